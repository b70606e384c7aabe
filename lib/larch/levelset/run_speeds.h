// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/levelset/segment.h"
#include "larch/levelset/speed/data_speed.h"

// Data speeds and means of the fields of a run, made where these lie.
namespace larch::levelset {

/// Makes what speeds and means are made of: the steps of intensities, with a region term, and on a
/// CUDA device copies of the request's images. Throws MemoryError.
void place_images(SegmentRun& run, const Context& context);

/// Gives back what is needed for new speeds alone, where there will be none.
void release_images(SegmentRun& run);

/// What D of a field is made of, but for the numbers of a voxel, with the means that the field has.
SpeedRule speed_rule_of(const SegmentRun& run, size_t f);

/// Makes D of a field (LevelsetField::speed). Images are placed; g of its edges is there.
void make_speed(SegmentRun& run, size_t f, const Context& context);

/// The means inside and outside of a field after so many iterations, by the configuration of its
/// run. Images are placed.
RegionMeans region_means_of(const SegmentRun& run, size_t f, int64_t iterations,
                            const Context& context);

}  // namespace larch::levelset
