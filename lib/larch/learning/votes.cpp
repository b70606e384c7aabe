// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/votes.h"

namespace larch::learning {

Votes cast_votes(const FeatureSource& source, std::span<const WeakClassifier> weaks,
                 std::span<const uint32_t> samples, const Context& context) {
  Votes votes;
  votes.samples = samples.size();
  votes.words = (weaks.size() + 31) / 32;
  votes.bits.assign(votes.samples * votes.words, 0);
  if (!votes.bits.empty()) source.vote({weaks, samples, votes.bits, {}}, context);
  return votes;
}

std::vector<int32_t> strong_scores(const FeatureSource& source,
                                   std::span<const WeakClassifier> weaks,
                                   std::span<const uint32_t> samples, const Context& context) {
  std::vector<int32_t> scores(samples.size(), 0);
  if (!scores.empty() && !weaks.empty()) source.vote({weaks, samples, {}, scores}, context);
  return scores;
}

}  // namespace larch::learning
