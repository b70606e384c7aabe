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

/// A mask and how it is sampled; pointers are of the device that samples.
struct MaskView {
  const uint16_t* samples = nullptr;
  Vec3i size{};
  const TapTable* taps = nullptr;
  bool clamps = false;            ///< beyond the edge lie samples of the edge, otherwise none
  bool skips_weightless = false;  ///< samples of weight 0 need not count
};

/// mask_sample where all nine samples around pixel (x, y) lie in the image and have to count: they
/// are read before any of them is looked at, so that a device waits for them once.
LARCH_HD uint16_t inner_mask_sample(const MaskView& mask, int32_t x, int32_t y, const Taps& tx,
                                    const Taps& ty) {
  const uint16_t* here = mask.samples + static_cast<int64_t>(y) * mask.size.x + x;
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

/// The sample at (x, y) in units of 1/kUnit pixel, filtered along x and then along y; kNoSample if
/// one of those it is made of is.
LARCH_HD uint16_t mask_sample(const MaskView& mask, int32_t x_units, int32_t y_units) {
  const Step sx = split_step(x_units), sy = split_step(y_units);
  const Taps& tx = mask.taps->at[sx.fraction + kUnit / 2];
  const Taps& ty = mask.taps->at[sy.fraction + kUnit / 2];
  const bool is_inner =
      sx.pixel > 0 && sy.pixel > 0 && sx.pixel + 1 < mask.size.x && sy.pixel + 1 < mask.size.y;
  if (is_inner && !mask.skips_weightless) {
    return inner_mask_sample(mask, sx.pixel, sy.pixel, tx, ty);
  }
  uint32_t rows[3] = {};
  for (int j = 0; j < 3; ++j) {
    if (mask.skips_weightless && ty.w[j] == 0) continue;
    int32_t y = sy.pixel + j - 1;
    if (y < 0 || y >= mask.size.y) {
      if (!mask.clamps) return kNoSample;
      y = y < 0 ? 0 : mask.size.y - 1;
    }
    const uint16_t* row = mask.samples + static_cast<int64_t>(y) * mask.size.x;
    uint32_t taps[3] = {};
    for (int i = 0; i < 3; ++i) {
      if (mask.skips_weightless && tx.w[i] == 0) continue;
      int32_t x = sx.pixel + i - 1;
      if (x < 0 || x >= mask.size.x) {
        if (!mask.clamps) return kNoSample;
        x = x < 0 ? 0 : mask.size.x - 1;
      }
      taps[i] = row[x];
      if (taps[i] == kNoSample) return kNoSample;
    }
    rows[j] = tap_sum(tx, taps[0], taps[1], taps[2]);
  }
  return tap_sum(ty, rows[0], rows[1], rows[2]);
}

}  // namespace larch::dsa
