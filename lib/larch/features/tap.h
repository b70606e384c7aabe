// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/host_device.h"
#include "larch/image/integral.h"

namespace larch::features {

/// One term of a linear feature: weight * S(voxel + offset), S the integral volume of `channel`.
/// Every feature that is an integer combination of box sums reduces to taps; the CPU and CUDA
/// evaluators know nothing else of a feature, so a new linear family touches no kernel.
struct Tap {
  int16_t dx = 0, dy = 0, dz = 0;
  uint16_t channel = 0;
  int32_t weight = 0;

  friend bool operator==(const Tap& a, const Tap& b) {
    return a.dx == b.dx && a.dy == b.dy && a.dz == b.dz && a.channel == b.channel &&
           a.weight == b.weight;
  }
};

/// A tap for one layout in memory: the offset in elements of the integral volume of its channel.
struct LinearTap {
  int32_t offset = 0;
  int16_t weight = 0;
  uint16_t channel = 0;
};

/// Returns the sum of the taps modulo 2^32 at element `base` of the integral volume. Exact whenever
/// the true value fits int32, however often the integral volume itself has wrapped.
LARCH_HD int32_t linear_response(const LinearTap* taps, int count, const uint32_t* at) {
  uint32_t sum = 0;
  for (int t = 0; t < count; ++t) {
    sum += static_cast<uint32_t>(taps[t].weight) * at[taps[t].offset];
  }
  return static_cast<int32_t>(sum);
}

/// Returns the same for taps of any channels: `at(channel)` points to the element of the voxel in
/// the integral volume of a channel.
template <class At>
LARCH_HD int32_t response_of_channels(const LinearTap* taps, int count, const At& at) {
  uint32_t sum = 0;
  const uint32_t* from = nullptr;
  for (int t = 0; t < count; ++t) {
    if (t == 0 || taps[t].channel != taps[t - 1].channel) from = at(taps[t].channel);
    sum += static_cast<uint32_t>(taps[t].weight) * from[taps[t].offset];
  }
  return static_cast<int32_t>(sum);
}

/// Returns a tap for one layout: its offset from the element of a voxel (IntegralLayout::base) in
/// the integral volume of the tap's channel. Throws MemoryError if it leaves 32 bits.
LinearTap linear_tap(const Tap& tap, std::span<const image::IntegralLayout> layouts);

/// Tells whether a tap can be other than 0, in the layout of its channel: of two planes, which an
/// image of one slice without padding across it has, the lower one holds zeros.
LARCH_HD bool counts(const Tap& tap, const image::IntegralLayout& layout) {
  return tap.dz != 0 || layout.stride_size.z != 2 || layout.is_cut;
}

/// The channel of all of these taps: kManyChannels if they are of several, 0 if there are none.
constexpr int32_t kManyChannels = -1;
int32_t common_channel(std::span<const Tap> taps);

/// Widens the boxes around the voxel and its taps, [channel][low, high], to hold these. Weights are
/// bounded as coordinates are.
void widen(std::vector<Tap>& boxes, std::span<const Tap> taps);

/// Throws UsageError if a tap reads beyond the padding of its channel, wherever the voxel lies, or
/// another channel than there is, and what linear_tap throws. Boxes stand for all that they hold.
void check_taps(std::span<const Tap> taps, std::span<const image::IntegralLayout> layouts);

}  // namespace larch::features
