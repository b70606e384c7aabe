// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include <nlohmann/json.hpp>

#include "larch/io/markups/markups.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

std::string markup(const std::string& members) {
  return "{\"markups\": [{" + members + "}]}";
}

std::string box(const std::string& members) {
  return markup("\"type\": \"ROI\", \"coordinateSystem\": \"LPS\", " + members);
}

std::string file(const std::string& structures, const std::string& frame = "LPS") {
  return "{\"frame\": \"" + frame + "\", \"structures\": [" + structures + "]}";
}

std::string structure(const std::string& members, const std::string& name = "heart") {
  return "{\"name\": \"" + name + "\", \"status\": \"found\", \"confidence\": 0.5, " + members +
         "}";
}

Pose random_pose() {
  static std::mt19937 random(1);
  std::normal_distribution<double> normal;
  const auto some = [&] { return normal(random); };
  return {{some(), some() * 100, 1.0 / 3},
          canonical({some(), some(), some(), some()}),
          {1 + std::abs(some()), 2, 0.1}};
}

const std::string kSound =
    "\"center_mm\": [1, 2, 3], \"quaternion_wxyz\": [1, 0, 0, 0], \"size_mm\": [4, 5, 6]";

}  // namespace

TEST_CASE("points of Slicer in RAS, some of which are not placed") {
  const TemporaryFolder folder;
  const std::string path = folder / "points.mrk.json";
  write_file(path,
             markup("\"type\": \"Fiducial\", \"coordinateSystem\": \"RAS\", \"controlPoints\": ["
                    "{\"label\": \"a\", \"position\": [1, 2, 3]},"
                    "{\"label\": \"b\", \"position\": null, \"positionStatus\": \"undefined\"},"
                    "{\"label\": \"c\", \"position\": [0, -5, 6]}]"));
  const PointSet points = read_points(path);
  CHECK(points.points_mm == std::vector<Vec3d>{{-1, -2, 3}, {0, 5, 6}});
  CHECK(points.names == std::vector<std::string>{"a", "c"});
}

TEST_CASE("poses are boxes that Slicer shows, and come back as they were") {
  const TemporaryFolder folder;
  const std::string path = folder / "poses.mrk.json";
  std::vector<NamedPose> poses(20);
  for (NamedPose& one : poses) one = {std::to_string(&one - poses.data()), random_pose()};
  write_poses(path, poses);
  const std::vector<NamedPose> back = read_poses(path);
  REQUIRE(back.size() == poses.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].name == poses[i].name);
    CHECK(back[i].pose.centre_mm == poses[i].pose.centre_mm);
    CHECK(back[i].pose.edges_mm == poses[i].pose.edges_mm);
    CHECK(angle_between(back[i].pose.rotation, poses[i].pose.rotation) < 1e-7);
  }
}

TEST_CASE("axial lines lead along the longest edge, and are passed over") {
  const TemporaryFolder folder;
  const std::string path = folder / "poses.mrk.json";
  const Pose pose{{1, 2, 3}, canonical({1, 0, 0, 1}), {4, 6, 6}};  // the axis y along -x
  write_poses(path, {{"heart", pose}}, /*axial_lines=*/true);
  CHECK(read_poses(path).size() == 1);
  const auto file = nlohmann::json::parse(read_file(path));
  REQUIRE(file["markups"].size() == 2);
  const auto& line = file["markups"][1];
  CHECK(line["type"] == "Line");
  CHECK(line["name"] == "heart axis");
  CHECK(line["coordinateSystem"] == "LPS");
  REQUIRE(line["controlPoints"].size() == 2);
  for (int i = 0; i < 2; ++i) {
    const auto& point = line["controlPoints"][i];
    CHECK(point["positionStatus"] == "defined");
    const auto& at = point["position"];
    CHECK(norm(Vec3d{at[0], at[1], at[2]} - Vec3d{i == 0 ? 4.0 : -2.0, 2, 3}) < 1e-9);
  }
}

TEST_CASE("the axes of a box stand in the columns, in the frame that the file names") {
  const TemporaryFolder folder;
  const std::string path = folder / "box.mrk.json";
  // The box axis x runs along y of the world, y along -x.
  const std::string turned =
      "\"center\": [1, 2, 3], \"size\": [4, 5, 6], \"orientation\": [0, -1, 0, 1, 0, 0, 0, 0, 1]";
  for (const std::string frame : {"LPS", "RAS"}) {
    write_file(path,
               markup("\"type\": \"ROI\", \"coordinateSystem\": \"" + frame + "\", " + turned));
    const Pose pose = read_poses(path).at(0).pose;
    const double sign = frame == "LPS" ? 1 : -1;
    CHECK(norm(rotate(pose.rotation, {1, 0, 0}) - Vec3d{0, sign, 0}) < 1e-12);
    CHECK(pose.centre_mm == Vec3d{sign, 2 * sign, 3});
    CHECK(pose.edges_mm == Vec3d{4, 5, 6});
  }
}

TEST_CASE("markups that are damaged, or of another kind, are refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.mrk.json";
  const auto error = [&](const std::string& bytes) {
    write_file(path, bytes);
    return message_of<InputError>([&] { read_poses(path); });
  };
  const std::string sound = "\"center\": [1, 2, 3], \"size\": [4, 5, 6]";
  write_file(path, box(sound));
  CHECK(read_poses(path).size() == 1);
  write_file(path, box(sound + ", \"name\": \"" + std::string(99, '[') + "\\\"" +
                       std::string(99, '{') + "\""));
  CHECK(read_poses(path).size() == 1);
  // Deep in an own member, where nothing else is wrong: a copy of it would end the stack.
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  const auto with_size = [](const std::string& centre, const std::string& size = "[4, 5, 6]") {
    return box("\"center\": " + centre + ", \"size\": " + size);
  };
  check_refusals(
      error, {{"{", "no JSON"},
              {"", "is empty (0 bytes)"},
              {"[1]", "no array \"markups\""},
              {"{\"markups\": 3}", "no array \"markups\""},
              {"{\"markups\": [3]}", "/markups/0: expected an object"},
              {"{\"markups\": []}", "no markup of the type ROI"},
              {std::string(200000, '['), "more than 64 levels"},
              {box(sound + ", \"x\": " + deep), "more than 64 levels"},
              {markup("\"type\": \"ROI\", " + sound), "LPS or RAS"},
              {box("\"coordinateUnits\": \"m\", " + sound), "must be mm"},
              {with_size("[1, 2]"), "/markups/0/center: expected an array of 3 finite numbers"},
              {with_size("[1, 2, \"3\"]"), "finite numbers"},
              {with_size("[1, 2, 1e999]"), "'"},
              {with_size("[1, 2, 1e301]"), "finite numbers of at most 1e7"},
              {box(sound + ", \"size\": [7, 8, 9]"), "the key 'size' stands twice"},
              {with_size("[1, 2, 3]", "[4, 0, 6]"), "not longer than 0"},
              {box(sound + ", \"orientation\": [1, 0, 0, 0, 1, 0, 0, 0, -1]"), "right-handed"},
              {box(sound + ", \"orientation\": [1, 0, 0, 0, 1, 0, 0, 1, 1]"), "perpendicular"}});
  write_file(folder / "x.fcsv", "# Markups fiducial file version = 5.2\n");
  CHECK_THAT(message_of<InputError>([&] { read_points(folder / "x.fcsv"); }),
             Catch::Contains("save them there as .mrk.json"));
  NamedPose wrong{"heart", {}};
  wrong.pose.edges_mm.x = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(message_of<InputError>([&] { write_poses(path, {wrong}); }), Catch::Contains("heart"));
}

TEST_CASE("what was found comes back with every digit") {
  const TemporaryFolder folder;
  const std::string path = folder / "poses.json";
  std::vector<DetectedPose> poses;
  for (int i = 0; i < 50; ++i) {
    DetectedPose found{"structure " + std::to_string(i), "uncertain", 1.0 / (i + 3)};
    found.pose = random_pose();
    found.has_pose = true;
    found.figures = {{"spread_deg", found.pose.centre_mm.x}, {"support", i}};
    poses.push_back(found);
  }
  poses.push_back({"gone \"\xc3\xa9\"", "not found"});
  write_pose_file(path, poses);
  const std::vector<DetectedPose> back = read_pose_file(path);
  REQUIRE(back.size() == poses.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].name == poses[i].name);
    CHECK(back[i].status == poses[i].status);
    CHECK(back[i].pose == poses[i].pose);
    CHECK(back[i].has_pose == poses[i].has_pose);
    CHECK(back[i].figures == poses[i].figures);
  }
  CHECK(back[7].confidence == poses[7].confidence);
  CHECK(std::isnan(back.back().confidence));
  const auto json = nlohmann::json::parse(read_file(path));
  CHECK(json["structures"].back().size() == 3);
  // The matrix leads from the box to the world.
  const auto& m = json["structures"][5]["matrix"];
  const Vec3d at = world_from_box(poses[5].pose, {0.5, -0.25, 0.125});
  for (int row = 0; row < 3; ++row) {
    CHECK(0.5 * double(m[row][0]) - 0.25 * double(m[row][1]) + 0.125 * double(m[row][2]) +
              double(m[row][3]) ==
          Approx(at[row]));
  }
  CHECK(m[3] == nlohmann::json{0, 0, 0, 1});
  poses[1].figures = {{"matrix", 1.0}};
  CHECK_THAT(message_of<InputError>([&] { write_pose_file(path, poses); }),
             Catch::Contains("structure 1: two values of the name matrix"));
}

TEST_CASE("a file in RAS says the same of the same box as a markup of Slicer in RAS") {
  const TemporaryFolder folder;
  // The box axis x runs along y of the frame, y along -x: a quarter turn about z.
  write_file(folder / "a.mrk.json",
             "{\"markups\": [{\"type\": \"ROI\", \"name\": \"heart\", \"coordinateSystem\": "
             "\"RAS\", \"center\": [1, 2, 3], \"size\": [4, 5, 6], \"orientation\": "
             "[0, -1, 0, 1, 0, 0, 0, 0, 1]}]}");
  write_file(folder / "b.json",
             file(structure("\"center_mm\": [1, 2, 3], \"quaternion_wxyz\": [0.7071, 0, 0, "
                            "0.7071], \"size_mm\": [4, 5, 6], \"note\": [1], \"matrix\": null"),
                  "RAS"));
  const DetectedPose slicer = read_any_poses(folder / "a.mrk.json").at(0);
  const DetectedPose ours = read_any_poses(folder / "b.json").at(0);
  CHECK(slicer.name == ours.name);
  CHECK(slicer.status == "found");
  CHECK(slicer.has_pose);
  CHECK(ours.pose.centre_mm == Vec3d{-1, -2, 3});
  CHECK(ours.pose.centre_mm == slicer.pose.centre_mm);
  CHECK(ours.pose.edges_mm == slicer.pose.edges_mm);
  CHECK(angle_between(ours.pose.rotation, slicer.pose.rotation) < 1e-7);
  CHECK(norm(rotate(ours.pose.rotation, {1, 0, 0}) - Vec3d{0, -1, 0}) < 1e-12);
  CHECK(ours.figures.empty());
}

TEST_CASE("files of poses that are damaged are refused, by file and structure") {
  const TemporaryFolder folder;
  const std::string path = folder / "poses.json";
  const auto error = [&](const std::string& bytes) {
    write_file(path, bytes);
    return message_of<InputError>([&] { read_pose_file(path); });
  };
  const auto with = [&](const std::string& centre, const std::string& q, const std::string& size) {
    return file(structure(kSound, "a") + "," +
                structure("\"center_mm\": " + centre + ", \"quaternion_wxyz\": " + q +
                          ", \"size_mm\": " + size));
  };
  const std::string where = "poses.json': /structures/1 ('heart')", centre = "[1, 2, 3]";
  std::string many = "0";
  for (int i = 0; i < 10000; ++i) many += ",0";
  check_refusals(
      error,
      {{with("[1, 2]", "[1, 0, 0, 0]", "[1, 1, 1]"), where + "/center_mm"},
       {with("[1, 2, null]", "[1, 0, 0, 0]", "[1, 1, 1]"), where},
       {with(centre, "[1, 0.1, 0, 0]", "[1, 1, 1]"), where + "/quaternion_wxyz: its length"},
       {with(centre, "[1e200, 0, 0, 0]", "[1, 1, 1]"), "finite numbers of at most 1e7"},
       {with("[1, 2, 1e301]", "[1, 0, 0, 0]", "[1, 1, 1]"), where + "/center_mm"},
       {with(centre, "[1, 0, 0, 0]", "[1e308, 1, 1]"), where + "/size_mm"},
       {file(structure(kSound + ", \"center_mm\": [9, 9, 9]")), "the key 'center_mm' stands twice"},
       {with(centre, "[0, 0, 0, 0]", "[1, 1, 1]"), "its length"},
       {with(centre, "[1, 0, 0, 0]", "[1, 0, 1]"), where},
       {file(structure("\"size_mm\": [1, 1, 1]")), "/center_mm: expected an array of 3"},
       {file(structure(kSound) + "," + structure(kSound)), "two structures are called 'heart'"},
       {file(structure(kSound, "a\\tb")), "control characters"},
       {file("{\"status\": \"found\"}"), "no \"name\""},
       {file("{\"name\": \"heart\"}"), "'heart'): it has no \"status"},
       {file("{\"name\": \"heart\", \"status\": \"found\", \"confidence\": 2}"),
        "'heart')/confidence"},
       {file("3"), "/structures/0: expected an object"},
       {file(structure(kSound), "RAI"), "LPS or RAS"},
       {"[]", "no array \"structures\""},
       {"{", "no JSON"},
       {std::string(200000, '['), "more than 64 levels"},
       {file(many), "more than 10000"}});
  fs::resize_file(path, (64 << 20) + 1);
  CHECK_THAT(message_of<InputError>([&] { read_pose_file(path); }), Catch::Contains("64 MiB"));
  // Boxes without names cannot be matched.
  write_poses(folder / "b.mrk.json", {{"", {}}});
  CHECK_THAT(message_of<InputError>([&] { read_any_poses(folder / "b.mrk.json"); }),
             Catch::Contains("is empty"));
}
