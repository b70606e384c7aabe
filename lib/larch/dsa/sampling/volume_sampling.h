// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/dsa/sampling/sampling_math.h"

namespace larch::dsa {

/// mask_sample in a volume: filtered along x, y and z, in this order.
inline uint16_t volume_sample(const MaskView& mask, const Vec3i& units) {
  const Step sz = split_step(units.z);
  const Taps& tz = mask.taps->at[sz.fraction + kUnit / 2];
  uint32_t planes[3] = {};
  for (int k = 0; k < 3; ++k) {
    const int32_t z = sz.pixel + k - 1;
    if (z < 0 || z >= mask.size.z) return kNoSample;
    MaskView plane = mask;
    plane.samples += static_cast<int64_t>(z) * mask.size.x * mask.size.y;
    planes[k] = mask_sample(plane, units.x, units.y);
    if (planes[k] == kNoSample) return kNoSample;
  }
  return tap_sum(tz, planes[0], planes[1], planes[2]);
}

}  // namespace larch::dsa
