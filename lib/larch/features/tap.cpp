// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/tap.h"

#include <algorithm>
#include <cstdlib>

#include "larch/core/error.h"

namespace larch::features {

LinearTap linear_tap(const Tap& tap, std::span<const image::IntegralLayout> layouts) {
  const int64_t offset = layouts[tap.channel].linear_offset(tap.dx, tap.dy, tap.dz);
  if (std::abs(offset) > INT32_MAX) {
    throw MemoryError("a slice of the integral volume is too large for 32-bit offsets");
  }
  if (tap.weight < INT16_MIN || tap.weight > INT16_MAX) {
    throw UsageError("a feature has a weight beyond 16 bits");
  }
  return {static_cast<int32_t>(offset), static_cast<int16_t>(tap.weight), tap.channel};
}

bool counts(const Tap& tap, std::span<const image::IntegralLayout> layouts) {
  const image::IntegralLayout& layout = layouts[tap.channel];
  return tap.dz != 0 || layout.stride_size.z != 2 || layout.is_cut;
}

int32_t common_channel(std::span<const Tap> taps) {
  if (taps.empty()) return 0;
  const uint16_t channel = taps.front().channel;
  const bool same = std::all_of(taps.begin(), taps.end(),
                                [channel](const Tap& tap) { return tap.channel == channel; });
  return same ? channel : kManyChannels;
}

bool within_padding(std::span<const Tap> taps, std::span<const image::IntegralLayout> layouts) {
  return std::all_of(taps.begin(), taps.end(), [&](const Tap& tap) {
    if (tap.channel >= layouts.size()) return false;
    const Vec3i& pad = layouts[tap.channel].pad;
    const Vec3i at{tap.dx, tap.dy, tap.dz};
    for (int axis = 0; axis < 3; ++axis) {
      if (at[axis] < -pad[axis] || at[axis] > pad[axis] + 1) return false;
    }
    return true;
  });
}

}  // namespace larch::features
