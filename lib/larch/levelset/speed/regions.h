// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/speed/regions_math.h"
#include "larch/levelset/speed/speed_math.h"

namespace larch::levelset {

/// The steps from the least to the largest finite intensity of an image.
IntensitySteps intensity_steps_of(const Volume<float>& image, int threads);

/// A surface in an image, on one device. Images have the size of the layout, x is the fastest axis.
struct Regions {
  BrickLayout layout{};
  const float* phi = nullptr;  ///< by brick; below 0 inside
  const float* intensities = nullptr;
  const uint8_t* pinned = nullptr;  ///< voxels that do not count: not 0; null: none
  IntensitySteps steps{};           ///< of the image
  /// Along each axis; outside, only voxels count that lie in a box of so many around a voxel
  /// inside: further away an image holds much that tells nothing of the structure. 0, 0, 0: all.
  Vec3i reach{};
};

/// Regions::reach: the voxels in band_mm, at least one, at most those of the image; 0, 0, 0 where
/// band_mm is 0.
Vec3i region_reach(const Grid& grid, double band_mm);

/// Sums over the voxels inside and outside that have a finite intensity, on the device of the
/// context, where the pointers lead.
RegionSums region_sums(const Regions& regions, const Context& context);

/// The mean intensities. Where one side has no voxel both are the same, 0 where none has.
RegionMeans means_of(const RegionSums& sums, const IntensitySteps& steps);

namespace cpu {
RegionSums region_sums(const Regions& regions, const Context& context);
}  // namespace cpu
namespace cuda {
RegionSums region_sums(const Regions& regions, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
