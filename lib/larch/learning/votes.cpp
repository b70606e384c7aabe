// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/votes.h"

#include <algorithm>
#include <array>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/features/lane_kernels.h"

namespace larch::learning {
namespace {
constexpr Dispatch<void(const VotesJob&)> kVotes{"pbt::cast_votes", cpu::cast_votes,
                                                 LARCH_CUDA_FN(cuda::cast_votes)};

std::vector<VoteRecord> records_of(const FeaturePool& pool, std::span<const WeakClassifier> weaks) {
  std::vector<VoteRecord> records;
  records.reserve(weaks.size());
  for (const WeakClassifier& weak : weaks) {
    const PoolFeature& feature = pool.host[weak.feature];
    records.push_back({feature.first_tap, feature.n_tap, feature.channel, weak.codes, weak.bins,
                       weak.mask, weak.alpha_q20});
  }
  return records;
}

}  // namespace

Votes cast_votes(const FeaturePool& pool, std::span<const WeakClassifier> weaks,
                 const SamplePlaces& places, const Context& context) {
  const std::vector<VoteRecord> records = records_of(pool, weaks);
  Votes votes;
  votes.samples = places.index.size();
  votes.words = (weaks.size() + 31) / 32;
  votes.bits.assign(votes.samples * votes.words, 0);
  if (!votes.bits.empty()) {
    kVotes(pool.taps.device(), VotesJob{pool.taps.data(),
                                        records,
                                        places,
                                        votes.bits,
                                        {},
                                        context.threads,
                                        context.device.index});
  }
  return votes;
}

std::vector<int32_t> strong_scores(const FeaturePool& pool, std::span<const WeakClassifier> weaks,
                                   const SamplePlaces& places, const Context& context) {
  const std::vector<VoteRecord> records = records_of(pool, weaks);
  std::vector<int32_t> scores(places.index.size(), 0);
  if (!scores.empty() && !weaks.empty()) {
    kVotes(
        pool.taps.device(),
        VotesJob{
            pool.taps.data(), records, places, {}, scores, context.threads, context.device.index});
  }
  return scores;
}

namespace cpu {
namespace {

using features::cpu::kLanes;
using features::cpu::VoteRule;

/// What all weak classifiers say of samples [first, first + lanes): so few at a time that what
/// the weak classifiers read around them stays in the cache.
void vote_group(const VotesJob& job, std::span<const VoteRule> rules, size_t first, size_t lanes) {
  const SamplePlaces& places = job.places;
  const size_t words = (rules.size() + 31) / 32;
  std::array<int64_t, kLanes> base{};
  std::array<uint32_t, kLanes> bits{};
  std::array<int32_t, kLanes> scores{};
  int32_t channel = -1;
  for (size_t t = 0; t < rules.size(); ++t) {
    if (job.weaks[t].channel != channel) {
      channel = job.weaks[t].channel;
      const int64_t* bases = places.bases + job.weaks[t].channel * places.sample_count;
      for (size_t k = 0; k < lanes; ++k) base[k] = bases[places.index[first + k]];
    }
    features::cpu::lane_kernels().vote_points(rules[t], places.integral, {base.data(), lanes},
                                              bits.data());
    if (!job.scores.empty()) {
      for (size_t k = 0; k < lanes; ++k) {
        scores[k] += bits[k] != 0 ? job.weaks[t].alpha_q20 : -job.weaks[t].alpha_q20;
      }
      bits.fill(0);
    } else if (t % 32 == 31 || t + 1 == rules.size()) {
      for (size_t k = 0; k < lanes; ++k) job.bits[(first + k) * words + t / 32] = bits[k];
      bits.fill(0);
    }
  }
  if (!job.scores.empty()) std::copy_n(scores.data(), lanes, job.scores.data() + first);
}

}  // namespace

void cast_votes(const VotesJob& job) {
  std::vector<VoteRule> rules;
  for (const VoteRecord& weak : job.weaks) {
    rules.push_back({job.taps + weak.first_tap, weak.n_tap, 1u << (rules.size() % 32), weak.codes,
                     weak.bins, weak.mask});
  }
  const auto samples = static_cast<int64_t>(job.places.index.size());
  parallel_for(job.threads, samples, 256, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kLanes) {
      vote_group(job, rules, static_cast<size_t>(first),
                 static_cast<size_t>(std::min<int64_t>(kLanes, end - first)));
    }
  });
}

}  // namespace cpu
}  // namespace larch::learning
