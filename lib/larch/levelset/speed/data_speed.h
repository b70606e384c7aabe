// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/speed/speed_math.h"

namespace larch::levelset {

/// Images that D is made of, on one device, of one size; x is the fastest axis.
struct SpeedImages {
  const float* intensities = nullptr;  ///< may be null with a speed image and no region term
  const float* given = nullptr;        ///< a speed image; null: SpeedRule has none
  const uint8_t* pinned = nullptr;     ///< not 0: D is kFrozen; null: nowhere
};

/// What D of one label is made of.
struct DataSpeed {
  BrickLayout layout{};  ///< of the images' size
  SpeedRule rule{};
  SpeedImages images{};
  const int16_t* edge_stop = nullptr;  ///< g as it is stored, by brick; null: 1 everywhere
};

/// Writes D as it is stored (stored_data_speed), by brick, and 0 where bricks are filled up, on the
/// device of the context, where all pointers lead.
void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context);

/// The voxels of images on the host where a number is not finite that D is made from.
int64_t count_without_number(const SpeedImages& images, const SpeedRule& rule, int64_t voxels,
                             int threads);

/// Calls f.operator()<kGiven, kRegions>() with those of a rule, for stored_data_speed.
template <class F>
auto with_parts_of(const SpeedRule& rule, const F& f) {
  if (rule.is_given) {
    return rule.region_weight > 0 ? f.template operator()<true, true>()
                                  : f.template operator()<true, false>();
  }
  return rule.region_weight > 0 ? f.template operator()<false, true>()
                                : f.template operator()<false, false>();
}

namespace cpu {
void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context);
}  // namespace cpu
namespace cuda {
void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
