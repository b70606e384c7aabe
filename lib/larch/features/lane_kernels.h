// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "larch/features/tap.h"
#include "larch/learning/weak_math.h"

namespace larch::features::cpu {

/// Voxels (or samples) that the inner loops of the CPU take together.
constexpr int kLanes = 8;

/// A weak classifier as the loops read it. `value` is added where it votes +1.
struct VoteRule {
  const LinearTap* taps = nullptr;
  int32_t n_tap = 0;
  uint32_t value = 0;
  learning::CodeMap codes;
  learning::BinMap bins;
  uint64_t mask = 0;
  bool is_odd = false;  ///< tap k from the front has minus the weight of tap k from the back
  /// Where find_step found that the vote changes at one value at most, one comparison takes the
  /// place of codes, bins and mask: values up to `last` vote +1 if `below` is all ones, those
  /// beyond it if `below` is 0.
  bool is_step = false;
  int32_t last = 0;
  uint32_t below = 0;
  const uint32_t* integral = nullptr;  ///< volume of its channel, for vote_rows
};
void find_step(VoteRule& rule);

/// A feature as the loops read it that compute codes from a patch (see PatchPlan).
struct CodeRule {
  const LinearTap* taps = nullptr;  ///< offset: row of the patch
  int32_t n_tap = 0;
  learning::CodeMap codes;
};

/// The inner loops of evaluation and training, once for each instruction set; all give the same
/// integers. `integral` is an integral volume, modulo 2^32.
struct LaneKernels {
  const char* name;

  /// For each rule, s of slots and each lane: sum[kLanes * s + lane] += rule.value where the weak
  /// classifier votes +1 at element base[s] + lane of its integral volume.
  void (*vote_rows)(std::span<const VoteRule> rules, const int64_t* base,
                    std::span<const int32_t> slots, uint32_t* sum);

  /// For each i: sum[i] += rule.value where the weak classifier votes +1 at element base[i].
  void (*vote_points)(const VoteRule& rule, const uint32_t* integral, std::span<const int64_t> base,
                      uint32_t* sum);

  /// For each feature f and each lane: codes[f * kLanes + lane] of the sample whose integral
  /// elements are patch[row * kLanes + lane].
  void (*patch_codes)(std::span<const CodeRule> features, const uint32_t* patch, uint8_t* codes);

  /// As patch_codes, but the values of the features themselves.
  void (*patch_values)(std::span<const CodeRule> features, const uint32_t* patch, int32_t* values);
};

/// The fastest set that this machine runs.
const LaneKernels& lane_kernels();

/// Every set that this machine runs, the portable one first.
std::span<const LaneKernels> all_lane_kernels();

/// Implementations of lane_kernels.
extern const LaneKernels kPortableKernels;
extern const LaneKernels kAvx2Kernels;  ///< only where the compiler targets x86-64

}  // namespace larch::features::cpu
