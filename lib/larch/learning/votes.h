// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_source.h"

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

/// Evaluates the weak classifiers (at most kMaximumWeaks), whose features are columns of `source`,
/// at samples.
Votes cast_votes(const FeatureSource& source, std::span<const WeakClassifier> weaks,
                 std::span<const uint32_t> samples, const Context& context);

/// H of the strong classifier that these weak classifiers (at most kMaximumWeaks) are, Q20, at
/// samples.
std::vector<int32_t> strong_scores(const FeatureSource& source,
                                   std::span<const WeakClassifier> weaks,
                                   std::span<const uint32_t> samples, const Context& context);

}  // namespace larch::learning
