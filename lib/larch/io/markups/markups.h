// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/data/pose.h"

namespace larch {

/// Points and poses as markups of 3D Slicer (.mrk.json, schema 1.0.3), so that they can be seen and
/// moved there, and files of poses. Positions are written in LPS, and read in LPS or RAS as the
/// file says. Files of more than 64 MiB, or 64 levels of lists and objects, are not read.

/// A pose and what it is the pose of.
struct NamedPose {
  std::string name;
  Pose pose;
};

/// Reads the points of all lists of points of a file, in order; points that Slicer calls undefined
/// or missing are left out. Throws InputError: no JSON, no markups, a coordinate system other than
/// LPS and RAS, units other than mm, a position that is not three finite numbers.
PointSet read_points(const std::string& path);

/// Writes one box ("ROI") for each pose: centre, size and the axes of its orientation. With
/// axial_lines it is followed by a line of two points ("Line", named "<name> axis"), from face to
/// face through the centre along the longest edge. Throws InputError for a pose that cannot be
/// (check_pose), OutputError.
void write_poses(const std::string& path, const std::vector<NamedPose>& poses,
                 bool axial_lines = false);

/// Reads the boxes of a file, in order, and passes over lines. Throws InputError as read_points
/// does, and for axes that are not perpendicular unit vectors of a right-handed frame, or sizes
/// that are not above 0.
std::vector<NamedPose> read_poses(const std::string& path);

/// A structure that was looked for in an image.
struct DetectedPose {
  std::string name;
  std::string status;  ///< "found", "uncertain", "not found", ... in the words of the program
  double confidence = std::numeric_limits<double>::quiet_NaN();  ///< 0 to 1; NaN: unknown
  Pose pose{};                                                   ///< if has_pose
  bool has_pose = false;
  std::vector<std::pair<std::string, double>> figures{};  ///< further numbers by name
};

/// Writes poses in world coordinates as JSON, numbers with all their digits:
///
///     {"frame": "LPS", "structures": [{"name": "heart", "status": "found", "confidence": 0.9,
///       "center_mm": [x, y, z], "quaternion_wxyz": [w, x, y, z], "size_mm": [x, y, z],
///       "matrix": [[4 numbers], 4 rows], "support": 12}, ...]}
///
/// `matrix` maps box coordinates (-0.5 to 0.5) to the world. The last keys are the figures. A
/// structure without a pose has name, status and confidence alone. NaN becomes null. Throws
/// InputError for a pose that cannot be (check_pose) and for a figure that has the name of another
/// key, OutputError.
void write_pose_file(const std::string& path, const std::vector<DetectedPose>& poses);

/// Reads such a file, in LPS or RAS as it says. The quaternion counts, not the matrix; all other
/// keys that hold numbers are figures, sorted by name, and the rest is passed over. Throws
/// InputError that names file and structure: more than 64 MiB or 10000 structures, no JSON, another
/// frame, no name or status, a name that stands twice or holds control characters, a confidence
/// that is not in 0 to 1, a part of a pose only, numbers that are not finite, sizes that are not
/// above 0, a quaternion whose length differs from 1 by more than 0.001.
std::vector<DetectedPose> read_pose_file(const std::string& path);

/// Reads the boxes of a .mrk.json of 3D Slicer (read_poses), which count as found, or a file of
/// poses. Throws InputError as these do, and for boxes without a name or with the same.
std::vector<DetectedPose> read_any_poses(const std::string& path);

/// The poses of a file; of points they are cubes with the axes of the world.
struct PosesOfFile {
  std::vector<DetectedPose> poses;
  bool are_points = false;
};
/// The edge of such a cube: a point that is found counts as right within half of it, which is also
/// the most that counts for larger boxes (failure_distance_mm).
inline constexpr double kPointEdgeMm = 20;
/// Reads poses as read_any_poses does, or, of a .mrk.json with points and no boxes, its points.
/// Throws InputError as these do, and for points without a name or with the same.
PosesOfFile read_poses_or_points(const std::string& path);

}  // namespace larch
