// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/linear/linear_source.h"

#include "larch/core/dispatch.h"

namespace larch::features {
namespace {

constexpr Dispatch<std::vector<learning::CodeMap>(const LinearRangeJob&)> kRange{
    "features::range", cpu::range, LARCH_CUDA_FN(cuda::range)};
constexpr Dispatch<PreparedPointer(const LinearPrepareJob&)> kPrepare{
    "features::prepare", cpu::prepare, LARCH_CUDA_FN(cuda::prepare)};
constexpr Dispatch<void(const LinearFillJob&)> kFill{"features::fill", cpu::fill,
                                                     LARCH_CUDA_FN(cuda::fill)};
constexpr Dispatch<void(const LinearVoteJob&)> kVote{"features::vote", cpu::vote,
                                                     LARCH_CUDA_FN(cuda::vote)};

}  // namespace

std::string LinearSource::name(uint32_t column) const {
  const LinearFeature& feature = columns_->features[column];
  return "linear feature " + std::to_string(column) + " (" + std::to_string(feature.n_tap) +
         " taps of channel " + std::to_string(feature.channel) + ")";
}

learning::Price LinearSource::price(uint32_t column) const {
  const LinearFeature& feature = columns_->features[column];
  return {feature.n_tap, feature.cost_units};
}

std::vector<learning::CodeMap> LinearSource::range(std::span<const uint32_t> samples,
                                                   const Context& context) const {
  learning::check_ranged(samples.size());
  return kRange(device(), LinearRangeJob{*columns_, places_, samples, context});
}

PreparedPointer LinearSource::prepare(const learning::ColumnRequest& request,
                                      const Context&) const {
  return kPrepare(device(), LinearPrepareJob{*columns_, *this, request});
}

void LinearSource::fill(const learning::PreparedColumns& columns, std::span<const uint32_t> samples,
                        learning::FeatureMatrix& matrix, const Context& context) const {
  kFill(device(), LinearFillJob{columns, places_, samples, matrix, context});
}

void LinearSource::vote(const learning::VoteRequest& request, const Context& context) const {
  std::vector<VoteRecord> records;
  records.reserve(request.weaks.size());
  for (const learning::WeakClassifier& weak : request.weaks) {
    const LinearFeature& feature = columns_->features[weak.feature];
    records.push_back({feature.first_tap, feature.n_tap, feature.channel, weak.codes, weak.bins,
                       weak.mask, weak.alpha_q20});
  }
  kVote(device(), LinearVoteJob{columns_->device_taps.data(), places_, records, request, context});
}

}  // namespace larch::features
