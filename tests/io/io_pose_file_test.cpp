// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include <nlohmann/json.hpp>

#include "larch/io/markups/markups.h"
#include "larch/io/markups/pose_file.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

std::string file(const std::string& structures, const std::string& frame = "LPS") {
  return "{\"frame\": \"" + frame + "\", \"structures\": [" + structures + "]}";
}

std::string structure(const std::string& members, const std::string& name = "heart") {
  return "{\"name\": \"" + name + "\", \"status\": \"found\", \"confidence\": 0.5, " + members +
         "}";
}

const std::string kSound =
    "\"center_mm\": [1, 2, 3], \"quaternion_wxyz\": [1, 0, 0, 0], \"size_mm\": [4, 5, 6]";

}  // namespace

TEST_CASE("what was found comes back with every digit") {
  const TemporaryFolder folder;
  const std::string path = folder / "poses.json";
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<DetectedPose> poses;
  for (int i = 0; i < 50; ++i) {
    DetectedPose found{"structure " + std::to_string(i), "uncertain", 1.0 / (i + 3)};
    found.pose = {{normal(random), normal(random) * 100, 1.0 / 3},
                  canonical({normal(random), normal(random), normal(random), normal(random)}),
                  {1.0 + i, 2, 0.1}};
    found.has_pose = true;
    found.figures = {{"spread_deg", normal(random)}, {"support", i}};
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
    return error(file(structure(kSound, "a") + "," +
                      structure("\"center_mm\": " + centre + ", \"quaternion_wxyz\": " + q +
                                ", \"size_mm\": " + size)));
  };
  const std::string where = "poses.json': /structures/1 ('heart')";
  CHECK_THAT(with("[1, 2]", "[1, 0, 0, 0]", "[1, 1, 1]"), Catch::Contains(where + "/center_mm"));
  CHECK_THAT(with("[1, 2, null]", "[1, 0, 0, 0]", "[1, 1, 1]"), Catch::Contains(where));
  CHECK_THAT(with("[1, 2, 3]", "[1, 0.1, 0, 0]", "[1, 1, 1]"),
             Catch::Contains(where + "/quaternion_wxyz: its length"));
  CHECK_THAT(with("[1, 2, 3]", "[1e200, 0, 0, 0]", "[1, 1, 1]"), Catch::Contains("its length"));
  CHECK_THAT(with("[1, 2, 3]", "[0, 0, 0, 0]", "[1, 1, 1]"), Catch::Contains("its length"));
  CHECK_THAT(with("[1, 2, 3]", "[1, 0, 0, 0]", "[1, 0, 1]"), Catch::Contains(where));
  CHECK_THAT(error(file(structure("\"size_mm\": [1, 1, 1]"))),
             Catch::Contains("/center_mm: expected an array of 3"));
  CHECK_THAT(error(file(structure(kSound) + "," + structure(kSound))),
             Catch::Contains("two structures are called 'heart'"));
  CHECK_THAT(error(file(structure(kSound, "a\\tb"))), Catch::Contains("control characters"));
  CHECK_THAT(error(file("{\"status\": \"found\"}")), Catch::Contains("no \"name\""));
  CHECK_THAT(error(file("{\"name\": \"heart\"}")), Catch::Contains("'heart'): it has no \"status"));
  CHECK_THAT(error(file("{\"name\": \"heart\", \"status\": \"found\", \"confidence\": 2}")),
             Catch::Contains("'heart')/confidence"));
  CHECK_THAT(error(file("3")), Catch::Contains("/structures/0: expected an object"));
  CHECK_THAT(error(file(structure(kSound), "RAI")), Catch::Contains("LPS or RAS"));
  CHECK_THAT(error("[]"), Catch::Contains("no array \"structures\""));
  CHECK_THAT(error("{"), Catch::Contains("no JSON"));
  CHECK_THAT(error(std::string(200000, '[')), Catch::Contains("more than 64 levels"));
  std::string many = "0";
  for (int i = 0; i < 10000; ++i) many += ",0";
  CHECK_THAT(error(file(many)), Catch::Contains("more than 10000"));
  fs::resize_file(path, (64 << 20) + 1);
  CHECK_THAT(message_of<InputError>([&] { read_pose_file(path); }), Catch::Contains("64 MiB"));
  // Boxes without names cannot be matched.
  write_poses(folder / "b.mrk.json", {{"", {}}});
  CHECK_THAT(message_of<InputError>([&] { read_any_poses(folder / "b.mrk.json"); }),
             Catch::Contains("is empty"));
}
