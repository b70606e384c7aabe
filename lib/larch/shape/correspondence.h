// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"

namespace larch::shape {

/// The template on the surface of one case.
struct CorrespondedCase {
  std::vector<Vec3d> vertices_mm;  ///< those of the finest level, world; empty: rejected
  double distance_voxels = 0;      ///< mean distance of vertices from the surface
  int flipped = 0;                 ///< triangles more than 90 degrees off their vertices' normals
  int flipped_strictly = 0;        ///< against the gradient of the smoothed distance
  bool is_retried = false;         ///< with 4 or 16 times the fairing
  std::string rejection;           ///< the reason; empty: accepted
};

struct Correspondence {
  std::vector<Vec3d> mean_mm;  ///< the template on the mean shape, in the frame of its distance map
  std::vector<CorrespondedCase> cases;
};

/// Puts the sphere template (mesh/sphere_template.h) onto the surfaces of label maps, so that a
/// vertex is the same place of the structure in all of them. It is evolved once from an ellipsoid
/// to the zero surface of the mean signed distance (pose/truth.h); each case starts from there, as
/// its pose places, turns and scales the box. A step moves vertices along the gradient of the
/// smoothed distance, by at most half a voxel and smoothly (I + L/2), fairs the mesh (I + L^2; at
/// finer levels half and a quarter of it) and slides vertices to the middle of their rings. A case
/// is accepted whose vertices are less than half a voxel from its surface on average and of whose
/// triangles none is flipped.
///
/// `distances_mm`: signed, of masks of one component without holes (pose/distance_map.h); `poses`:
/// of the same frame as the mean, in the world. Throws InputError for a mean that has no inside;
/// Stopped.
Correspondence correspond(std::span<const Volume<float>> distances_mm, std::span<const Pose> poses,
                          const Volume<float>& mean_distance_mm, const Context& context);

/// Returns the box of points along the axes of their frame, whose rotation is the identity.
Pose box_of_points(std::span<const Vec3d> points_mm);

}  // namespace larch::shape
