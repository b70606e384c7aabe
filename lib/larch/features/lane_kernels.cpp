// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/lane_kernels.h"

#include <algorithm>
#include <ranges>

namespace larch::features::cpu {
namespace {

// Vectors of this length are split by the compiler where the machine has shorter ones.
typedef uint32_t U32 __attribute__((vector_size(32)));
typedef int32_t I32 __attribute__((vector_size(32)));

I32 greater(I32 a, I32 b) {
  return a > b ? a : b;
}
I32 lesser(I32 a, I32 b) {
  return a < b ? a : b;
}

/// (x * m) >> 32 for each lane.
U32 high_product(U32 x, uint32_t m) {
  U32 out;
  for (int k = 0; k < kLanes; ++k) out[k] = static_cast<uint32_t>((uint64_t{x[k]} * m) >> 32);
  return out;
}

/// Returns all ones in the lanes whose bit is set.
U32 mask_bits(uint64_t mask, U32 bit) {
  U32 out;
  for (int k = 0; k < kLanes; ++k) out[k] = 0u - static_cast<uint32_t>((mask >> bit[k]) & 1);
  return out;
}

/// Values 0..255 as bytes.
void store_bytes(uint8_t* at, U32 values) {
  for (int k = 0; k < kLanes; ++k) at[k] = static_cast<uint8_t>(values[k]);
}

#include "larch/features/lane_kernels.inc"

}  // namespace

const LaneKernels kPortableKernels{"portable", vote_rows, vote_points, patch_codes, patch_values};

void find_step(VoteRule& rule) {
  const bool below = (rule.mask & 1) != 0;
  const uint64_t rising = below ? ~rule.mask : rule.mask;
  rule.is_step = (rising | (rising - 1)) == ~uint64_t{0};
  if (!rule.is_step) return;
  const auto values = std::views::iota(int64_t{INT32_MIN}, int64_t{INT32_MAX} + 1);
  const auto beyond = std::ranges::partition_point(values, [&](int64_t value) {
    return !learning::weak_vote(rule.codes, rule.bins, rising, static_cast<int32_t>(value));
  });
  rule.last = static_cast<int32_t>(*beyond - 1);
  rule.below = below ? ~0u : 0;
}

std::span<const LaneKernels> all_lane_kernels() {
#ifdef __x86_64__
  static const LaneKernels sets[] = {kPortableKernels, kAvx2Kernels};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
#else
  return {&kPortableKernels, 1};
#endif
}

const LaneKernels& lane_kernels() {
  static const LaneKernels best = all_lane_kernels().back();
  return best;
}

}  // namespace larch::features::cpu
