// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/features/lane_kernels.h"
#include "larch/features/linear/linear_source.h"

namespace larch::features::cpu {
namespace {

/// What all weak classifiers say of samples [first, first + lanes): so few at a time that what
/// the weak classifiers read around them stays in the cache.
void vote_group(const LinearVoteJob& job, std::span<const VoteRule> rules, size_t first,
                size_t lanes) {
  const SamplePlaces& places = job.places;
  const size_t words = (rules.size() + 31) / 32;
  std::array<int64_t, kLanes> base{};
  std::array<uint32_t, kLanes> bits{};
  std::array<int32_t, kLanes> scores{};
  int32_t channel = -1;
  for (size_t t = 0; t < rules.size(); ++t) {
    if (job.weaks[t].channel == kSeveralChannels) {
      for (size_t k = 0; k < lanes; ++k) {
        const int32_t value = response_of_channels(rules[t].taps, rules[t].n_tap, [&](size_t c) {
          return places.integral + places.bases[c * places.count + job.request.samples[first + k]];
        });
        const bool vote = learning::weak_vote(rules[t].codes, rules[t].bins, rules[t].mask, value);
        bits[k] += vote ? rules[t].value : 0;
      }
    } else if (job.weaks[t].channel != channel) {
      channel = job.weaks[t].channel;
      const int64_t* bases = places.bases + job.weaks[t].channel * places.count;
      for (size_t k = 0; k < lanes; ++k) base[k] = bases[job.request.samples[first + k]];
    }
    if (job.weaks[t].channel != kSeveralChannels) {
      lane_kernels().vote_points(rules[t], places.integral, {base.data(), lanes}, bits.data());
    }
    if (!job.request.scores.empty()) {
      for (size_t k = 0; k < lanes; ++k) {
        scores[k] += bits[k] != 0 ? job.weaks[t].alpha_q20 : -job.weaks[t].alpha_q20;
      }
      bits.fill(0);
    } else if (t % 32 == 31 || t + 1 == rules.size()) {
      for (size_t k = 0; k < lanes; ++k) job.request.bits[(first + k) * words + t / 32] = bits[k];
      bits.fill(0);
    }
  }
  if (!job.request.scores.empty())
    std::copy_n(scores.data(), lanes, job.request.scores.data() + first);
}

}  // namespace

void vote(const LinearVoteJob& job) {
  std::vector<VoteRule> rules;
  for (const VoteRecord& weak : job.weaks) {
    rules.push_back({job.taps + weak.first_tap, weak.n_tap, 1u << (rules.size() % 32), weak.codes,
                     weak.bins, weak.mask});
  }
  const auto samples = static_cast<int64_t>(job.request.samples.size());
  parallel_for(job.context.threads, samples, 256, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kLanes) {
      vote_group(job, rules, static_cast<size_t>(first),
                 static_cast<size_t>(std::min<int64_t>(kLanes, end - first)));
    }
  });
}

}  // namespace larch::features::cpu
