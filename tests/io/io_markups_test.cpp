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

}  // namespace

TEST_CASE("points keep every digit and their names") {
  const TemporaryFolder folder;
  const std::string path = folder / "points.mrk.json";
  PointSet points;
  points.points_mm = {{1.0 / 3, -2e-17, 1e6}, {0, -0.1, 7}};
  points.names = {"apex \"left\"", "b\xff"};  // the second is no UTF-8
  write_points(path, points);
  PointSet back = read_points(path);
  CHECK(back.points_mm == points.points_mm);
  REQUIRE(back.names.size() == 2);
  CHECK(back.names[0] == points.names[0]);
  points.names.clear();
  write_points(path, points);
  CHECK(read_points(path).names.empty());
  CHECK(read_points(path).points_mm == points.points_mm);
  points.points_mm[1].y = std::numeric_limits<double>::infinity();
  CHECK_THAT(message_of<InputError>([&] { write_points(path, points); }),
             Catch::Contains("point 2 has a position that is not finite"));
}

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
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<NamedPose> poses;
  for (int i = 0; i < 20; ++i) {
    const Quaternion q =
        canonical({normal(random), normal(random), normal(random), normal(random)});
    poses.push_back({"structure " + std::to_string(i),
                     {{normal(random), normal(random) * 100, 1.0 / 3}, q, {1.0 + i, 2, 0.1}}});
  }
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
    CHECK(double(point["position"][0]) == Approx(i == 0 ? 4 : -2));
    CHECK(double(point["position"][1]) == Approx(2));
    CHECK(double(point["position"][2]) == Approx(3));
  }
}

TEST_CASE("the axes of a box stand in the columns, in the frame that the file names") {
  const TemporaryFolder folder;
  const std::string path = folder / "box.mrk.json";
  // The box axis x runs along y of the world, y along -x.
  const std::string turned =
      "\"center\": [1, 2, 3], \"size\": [4, 5, 6], \"orientation\": [0, -1, 0, 1, 0, 0, 0, 0, 1]";
  write_file(path, box(turned));
  const Pose lps = read_poses(path).at(0).pose;
  CHECK(norm(rotate(lps.rotation, {1, 0, 0}) - Vec3d{0, 1, 0}) < 1e-12);
  CHECK(lps.centre_mm == Vec3d{1, 2, 3});
  CHECK(lps.edges_mm == Vec3d{4, 5, 6});
  write_file(path, markup("\"type\": \"ROI\", \"coordinateSystem\": \"RAS\", " + turned));
  const Pose ras = read_poses(path).at(0).pose;
  CHECK(norm(rotate(ras.rotation, {1, 0, 0}) - Vec3d{0, -1, 0}) < 1e-12);
  CHECK(ras.centre_mm == Vec3d{-1, -2, 3});
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
  CHECK_THAT(error("{"), Catch::Contains("no JSON"));
  CHECK_THAT(error(""), Catch::Contains("no JSON"));
  CHECK_THAT(error("[1]"), Catch::Contains("no array \"markups\""));
  CHECK_THAT(error("{\"markups\": 3}"), Catch::Contains("no array \"markups\""));
  CHECK_THAT(error("{\"markups\": [3]}"), Catch::Contains("/markups/0: expected an object"));
  CHECK_THAT(error("{\"markups\": []}"), Catch::Contains("no markup of the type ROI"));
  CHECK_THAT(error(std::string(200000, '[')), Catch::Contains("more than 64 levels"));
  // Deep in an own member, where nothing else is wrong: a copy of it would end the stack.
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  CHECK_THAT(error(box(sound + ", \"x\": " + deep)), Catch::Contains("more than 64 levels"));
  write_file(path, box(sound + ", \"name\": \"" + std::string(99, '[') + "\\\"" +
                       std::string(99, '{') + "\""));
  CHECK(read_poses(path).size() == 1);
  CHECK_THAT(error(markup("\"type\": \"ROI\", " + sound)), Catch::Contains("LPS or RAS"));
  CHECK_THAT(error(box("\"coordinateUnits\": \"m\", " + sound)), Catch::Contains("must be mm"));
  CHECK_THAT(error(box("\"center\": [1, 2], \"size\": [4, 5, 6]")),
             Catch::Contains("/markups/0/center: expected an array of 3 finite numbers"));
  CHECK_THAT(error(box("\"center\": [1, 2, \"3\"], \"size\": [4, 5, 6]")),
             Catch::Contains("finite numbers"));
  CHECK_THAT(error(box("\"center\": [1, 2, 1e999], \"size\": [4, 5, 6]")), Catch::Contains("'"));
  CHECK_THAT(error(box("\"center\": [1, 2, 3], \"size\": [4, 0, 6]")),
             Catch::Contains("not longer than 0"));
  CHECK_THAT(error(box(sound + ", \"orientation\": [1, 0, 0, 0, 1, 0, 0, 0, -1]")),
             Catch::Contains("right-handed"));
  CHECK_THAT(error(box(sound + ", \"orientation\": [1, 0, 0, 0, 1, 0, 0, 1, 1]")),
             Catch::Contains("perpendicular"));
  NamedPose wrong{"heart", {}};
  wrong.pose.edges_mm.x = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(message_of<InputError>([&] { write_poses(path, {wrong}); }), Catch::Contains("heart"));
}
