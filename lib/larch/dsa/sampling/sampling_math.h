// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/samples.h"
#include "larch/dsa/sampling/interpolation_math.h"

// Samples of the mask at any place, one by one.
namespace larch::dsa {

/// A mask and the weights that it is sampled with; pointers are of the device that samples.
struct MaskView {
  const uint16_t* samples = nullptr;
  Vec3i size{};
  const TapTable* taps = nullptr;
};

/// Returns the sample at (x, y) in units of 1/kUnit pixel, filtered along x and then along y;
/// kNoSample if one of the nine samples around the nearest pixel is, or lies beyond the image. They
/// are read before any of them is looked at, so that a device waits for them once.
LARCH_HD uint16_t mask_sample(const MaskView& mask, int32_t x_units, int32_t y_units) {
  const Step sx = split_step(x_units), sy = split_step(y_units);
  const bool is_inner =
      sx.pixel > 0 && sy.pixel > 0 && sx.pixel + 1 < mask.size.x && sy.pixel + 1 < mask.size.y;
  if (!is_inner) return kNoSample;
  const Taps& tx = mask.taps->at[sx.fraction + kUnit / 2];
  const Taps& ty = mask.taps->at[sy.fraction + kUnit / 2];
  const uint16_t* here = mask.samples + static_cast<int64_t>(sy.pixel) * mask.size.x + sx.pixel;
  const uint16_t* before = here - mask.size.x;
  const uint16_t* after = here + mask.size.x;
  const uint32_t a[3] = {before[-1], before[0], before[1]};
  const uint32_t b[3] = {here[-1], here[0], here[1]};
  const uint32_t c[3] = {after[-1], after[0], after[1]};
  bool is_missing = false;
  for (int i = 0; i < 3; ++i) {
    is_missing = is_missing || a[i] == kNoSample || b[i] == kNoSample || c[i] == kNoSample;
  }
  if (is_missing) return kNoSample;
  return tap_sum(ty, tap_sum(tx, a[0], a[1], a[2]), tap_sum(tx, b[0], b[1], b[2]),
                 tap_sum(tx, c[0], c[1], c[2]));
}

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
