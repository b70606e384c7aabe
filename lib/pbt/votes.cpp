// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/votes.h"

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::pbt {
namespace {
constexpr Dispatch<void(const VotesJob&)> kVotes{"pbt::cast_votes", cpu::cast_votes,
                                                 LARCH_CUDA_FN(cuda::cast_votes)};
}  // namespace

Votes cast_votes(const FeaturePool& pool, std::span<const WeakClassifier> weaks,
                 const SamplePlaces& places, const Context& context) {
  std::vector<VoteRecord> records;
  for (const WeakClassifier& weak : weaks) {
    const PoolFeature& feature = pool.host[weak.feature];
    records.push_back(
        {feature.first_tap, feature.n_tap, feature.channel, weak.codes, weak.bins, weak.mask});
  }
  Votes votes;
  votes.samples = places.index.size();
  votes.words = (weaks.size() + 31) / 32;
  votes.bits.assign(votes.samples * votes.words, 0);
  if (votes.samples > 0 && !weaks.empty()) {
    kVotes(pool.taps.device(), VotesJob{pool.taps.data(), records, places, votes.bits,
                                        context.threads, context.device.index});
  }
  return votes;
}

namespace cpu {

void cast_votes(const VotesJob& job) {
  const size_t words = (job.weaks.size() + 31) / 32;
  const SamplePlaces& places = job.places;
  parallel_for(
      job.threads, static_cast<int64_t>(places.index.size()), 256, [&](int64_t a, int64_t b) {
        for (auto k = static_cast<size_t>(a); k < static_cast<size_t>(b); ++k) {
          uint32_t* bits = &job.bits[k * words];
          for (size_t t = 0; t < job.weaks.size(); ++t) {
            const VoteRecord& weak = job.weaks[t];
            const int64_t base = places.bases[weak.channel * places.sample_count + places.index[k]];
            const int32_t value = features::linear_response(job.taps + weak.first_tap, weak.n_tap,
                                                            places.integral + base);
            if (weak_vote(weak.codes, weak.bins, weak.mask, value)) {
              bits[t / 32] |= 1u << (t % 32);
            }
          }
        }
      });
}

}  // namespace cpu
}  // namespace larch::pbt
