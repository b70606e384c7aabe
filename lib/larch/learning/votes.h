// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/boost.h"

namespace larch::learning {

/// What each weak classifier of a node says of each sample: bit t of sample k is bit t % 32 of word
/// [k * words + t / 32], words = (weaks + 31) / 32.
struct Votes {
  size_t samples = 0, words = 0;
  std::vector<uint32_t> bits;

  bool at(size_t sample, size_t weak) const {
    return (bits[sample * words + weak / 32] >> (weak % 32)) & 1;
  }
};

/// Evaluates the weak classifiers (at most 256) at samples; taps are those of `pool`.
Votes cast_votes(const FeaturePool& pool, std::span<const WeakClassifier> weaks,
                 const SamplePlaces& places, const Context& context);

/// H of the strong classifier that these weak classifiers (at most 256) are, Q20, at samples.
std::vector<int32_t> strong_scores(const FeaturePool& pool, std::span<const WeakClassifier> weaks,
                                   const SamplePlaces& places, const Context& context);

/// A weak classifier for the kernels of these operations.
struct VoteRecord {
  int32_t first_tap = 0;
  uint16_t n_tap = 0;
  uint16_t channel = 0;
  CodeMap codes;
  BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};
struct VotesJob {
  const features::LinearTap* taps;
  std::span<const VoteRecord> weaks;  ///< host
  SamplePlaces places;
  std::span<uint32_t> bits;   ///< host; the votes, or
  std::span<int32_t> scores;  ///< host; H: one of the two is empty
  int threads;
  int device_index;
};
namespace cpu {
void cast_votes(const VotesJob& job);
}
namespace cuda {
void cast_votes(const VotesJob& job);
}

}  // namespace larch::learning
