// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/feature_source.h"

#include <numeric>
#include <utility>

#include "larch/core/error.h"
#include "larch/learning/matrix_votes.h"

namespace larch::learning {

std::vector<CodeMap> FeatureSource::range(std::span<const uint32_t> samples,
                                          const Context& context) const {
  if (samples.empty() || samples.size() > kMaximumRanged) {
    throw UsageError("code maps are taken from 1 to " + std::to_string(kMaximumRanged) +
                     " samples, not from " + std::to_string(samples.size()));
  }
  ColumnEnds ends(columns(), samples.size());
  add_ends(samples, ends, context);
  return ends.maps();
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

void FeatureSource::vote(std::span<const VoteRequest> requests, const Context& context) const {
  for (const VoteRequest& request : requests) vote_through_matrix(*this, request, context);
}

std::vector<CodeMap> ColumnEnds::maps() const {
  std::vector<CodeMap> maps;
  for (size_t at = 0; at < lists.size(); at += 2 * keep) {
    maps.push_back(make_code_map(lists[at + keep - 1], ~lists[at + 2 * keep - 1]));
  }
  return maps;
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
  const VoteRequest request{weaks, samples, votes.bits, {}};
  if (!votes.bits.empty()) source.vote({&request, 1}, context);
  return votes;
}

std::vector<std::vector<int32_t>> strong_scores(const FeatureSource& source,
                                                const std::vector<ScoreRequest>& requests,
                                                const Context& context) {
  std::vector<std::vector<int32_t>> scores;
  std::vector<VoteRequest> asked;
  for (const auto& [weaks, samples] : requests) {
    std::vector<int32_t>& h = scores.emplace_back(samples.size(), 0);
    if (!samples.empty() && !weaks.empty()) asked.push_back({weaks, samples, {}, h});
  }
  if (!asked.empty()) source.vote(asked, context);
  return scores;
}

}  // namespace larch::learning
