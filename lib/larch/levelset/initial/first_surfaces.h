// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/data/volume.h"
#include "larch/levelset.h"

namespace larch::levelset {

/// Signed distance in mm from each voxel's centre to the surface of the voxels of a mask, which
/// runs along their faces: half a spacing beside a face, negative inside. Exact within `most_mm`,
/// and held there: the distance to a box is separable. The border of the image is no surface. The
/// spacing counts; a direction that is not orthogonal is not taken into account. Time and memory (8
/// bytes per voxel beside the result) are linear in the voxels, time also in most_mm / spacing.
Volume<float> distance_to_faces(const Volume<uint8_t>& mask, double most_mm, int threads);

/// When a front that starts from phi_mm = 0 reaches each voxel's centre, in mm: it runs outwards at
/// one mm in a unit of time where `speed` (as it is stored) is 1, and never where it is not above
/// 0. Infinite where it does not come until `latest`, 0 inside. Fast marching with first
/// differences: Sethian, Proc. Natl. Acad. Sci. 93, 1996. Ties are taken in the order of the
/// voxels.
Volume<float> arrival_times(const Volume<float>& phi_mm, const Volume<int16_t>& speed,
                            double latest);

/// Holds what one label starts from, in mm, negative inside.
struct FirstSurface {
  int32_t label = 1;
  Volume<float> phi_mm{};  ///< held within `most_mm`
  Volume<float>
      reach_mm{};  ///< distance from the surface, exact up to `reach_mm`; empty where that is 0
  bool is_of_balls = true;
};

/// Tells whether anything is inside of a surface: phi < 0 somewhere.
bool has_inside(const Volume<float>& phi);

/// Returns the surfaces of a request, by ascending label: the union of what spheres, labels and phi
/// give to each. Throws UsageError where nothing is given, or a sphere lies outside or between the
/// voxels' centres; InputError where labels or phi have no voxel inside, or phi is not a number
/// somewhere.
std::vector<FirstSurface> first_surfaces(const SegmentRequest& request, double most_mm,
                                         double reach_mm, int threads);

}  // namespace larch::levelset
