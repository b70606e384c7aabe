// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/data/volume.h"
#include "larch/levelset.h"

namespace larch::levelset {

/// What one label starts from, in mm, negative inside.
struct FirstSurface {
  int32_t label = 1;
  Volume<float> phi_mm{};  ///< held within `most_mm`
  Volume<float>
      reach_mm{};  ///< distance from the surface, exact up to `reach_mm`; empty where that is 0
  bool is_of_balls = true;
};

/// Whether anything is inside of a surface: phi < 0 somewhere.
bool has_inside(const Volume<float>& phi);

/// The surfaces of a request, by ascending label: the union of what spheres, labels and phi give to
/// each. Throws UsageError where nothing is given, or a sphere lies outside or between the voxels'
/// centres; InputError where labels or phi have no voxel inside, or phi is not a number somewhere.
std::vector<FirstSurface> first_surfaces(const SegmentRequest& request, double most_mm,
                                         double reach_mm, int threads);

}  // namespace larch::levelset
