// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/data/point_set.h"
#include "larch/data/pose.h"

namespace larch {

/// Points and poses as markups of 3D Slicer (.mrk.json, schema 1.0.3), so that they can be seen and
/// moved there. Positions are written in LPS, and read in LPS or RAS as the file says. Files of
/// more than 64 MiB are not read.

/// A pose and what it is the pose of.
struct NamedPose {
  std::string name;
  Pose pose;
};

/// Writes one list of points ("Fiducial"). Coordinates keep all their digits. Throws InputError for
/// a position that is not finite, which JSON has no word for, and OutputError.
void write_points(const std::string& path, const PointSet& points);

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

}  // namespace larch
