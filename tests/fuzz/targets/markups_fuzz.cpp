// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Points and boxes of 3D Slicer: what is accepted is finite, and boxes are the same when they are
// written and read again.
#include <cmath>

#include "larch/io/markups/markups.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

void require_finite(const Vec3d& v) {
  fuzz::require(std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z),
                "a position that is not finite was read");
}

void use_points(const PointSet& points) {
  fuzz::require(points.names.empty() || points.names.size() == points.points_mm.size(),
                "not every point has a name");
  for (const Vec3d& point : points.points_mm) require_finite(point);
}

void use_poses(const std::vector<NamedPose>& poses) {
  for (const NamedPose& named : poses) check_pose(named.pose, "case");
  const std::string path = fuzz::folder() + "/back.mrk.json";
  write_poses(path, poses);
  const std::vector<NamedPose> back = read_poses(path);
  fuzz::require(back.size() == poses.size(), "a box was lost");
  for (size_t i = 0; i < back.size(); ++i) {
    const Pose &a = poses[i].pose, &b = back[i].pose;
    fuzz::require(back[i].name == poses[i].name && a.centre_mm == b.centre_mm &&
                      a.edges_mm == b.edges_mm && angle_between(a.rotation, b.rotation) < 1e-6,
                  "a box that was written reads back as another");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string name = "case.mrk.json";
  const std::string path = fuzz::file_of(name, fuzz::text_of(data, size));
  PointSet points;
  if (fuzz::accepts({ExitCode::kInput}, name, [&] { points = read_points(path); })) {
    use_points(points);
  }
  std::vector<NamedPose> poses;
  if (fuzz::accepts({ExitCode::kInput}, name, [&] { poses = read_poses(path); })) {
    use_poses(poses);
  }
  return 0;
}
