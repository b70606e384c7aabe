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

int32_t common_channel(std::span<const Tap> taps) {
  if (taps.empty()) return 0;
  const uint16_t channel = taps.front().channel;
  const bool same = std::all_of(taps.begin(), taps.end(),
                                [channel](const Tap& tap) { return tap.channel == channel; });
  return same ? channel : kManyChannels;
}

void widen(std::vector<Tap>& boxes, std::span<const Tap> taps) {
  for (const Tap& tap : taps) {
    for (size_t c = boxes.size() / 2; c <= tap.channel; ++c) {
      boxes.resize(2 * c + 2, Tap{.channel = static_cast<uint16_t>(c)});
    }
    Tap &low = boxes[2 * size_t{tap.channel}], &high = boxes[2 * size_t{tap.channel} + 1];
    for (const auto member : {&Tap::dx, &Tap::dy, &Tap::dz}) {
      low.*member = std::min(low.*member, tap.*member);
      high.*member = std::max(high.*member, tap.*member);
    }
    low.weight = std::min(low.weight, tap.weight);
    high.weight = std::max(high.weight, tap.weight);
  }
}

void check_taps(std::span<const Tap> taps, std::span<const image::IntegralLayout> layouts) {
  for (const Tap& tap : taps) {
    bool within = tap.channel < layouts.size();
    for (int axis = 0; axis < 3 && within; ++axis) {
      const int at = Vec3i{tap.dx, tap.dy, tap.dz}[axis], pad = layouts[tap.channel].pad[axis];
      within = at >= -pad && at <= pad + 1;
    }
    if (!within) {
      throw UsageError("a feature reads another channel than the image has, or beyond its padding");
    }
    linear_tap(tap, layouts);
  }
}

}  // namespace larch::features
