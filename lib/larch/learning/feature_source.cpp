// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/feature_source.h"

#include <numeric>

#include "larch/core/error.h"
#include "larch/learning/matrix_votes.h"

namespace larch::learning {

void check_ranged(size_t samples) {
  if (samples >= 1 && samples <= kMaximumRanged) return;
  throw UsageError("code maps are taken from 1 to " + std::to_string(kMaximumRanged) +
                   " samples, not from " + std::to_string(samples));
}

std::vector<Slot> slots_in_order(const FeatureSource& source, const ColumnRequest& request) {
  std::vector<Slot> slots;
  slots.reserve(request.columns.size());
  for (size_t k = 0; k < request.columns.size(); ++k) {
    const Price price = source.price(request.columns[k]);
    slots.push_back({request.columns[k], price.complexity, price.cost_units, request.maps[k]});
  }
  const size_t width = block_width(source.device());
  slots.resize((slots.size() + width - 1) / width * width);
  return slots;
}

std::shared_ptr<const PreparedColumns> FeatureSource::prepare(const ColumnRequest& request,
                                                              const Context&) const {
  return std::make_shared<const PreparedColumns>(slots_in_order(*this, request), device());
}

void FeatureSource::vote(const VoteRequest& request, const Context& context) const {
  vote_through_matrix(*this, request, context);
}

std::shared_ptr<const PreparedColumns> prepare_all(const FeatureSource& source,
                                                   std::span<const CodeMap> maps,
                                                   const Context& context) {
  std::vector<uint32_t> all(source.columns());
  std::iota(all.begin(), all.end(), 0u);
  return source.prepare({all, maps}, context);
}

FeatureMatrix fill_matrix(const FeatureSource& source, const PreparedColumns& columns,
                          std::span<const uint32_t> samples, const Context& context) {
  FeatureMatrix matrix(columns, samples.size());
  source.fill(columns, samples, matrix, context);
  return matrix;
}

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
