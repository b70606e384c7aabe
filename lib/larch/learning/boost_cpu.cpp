// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/learning/bin_matrix.h"
#include "larch/learning/boost.h"

namespace larch::learning::cpu {
namespace {

/// The best feature of a block in this round.
uint64_t best_of_block(const MatrixJob& job, const BinMatrix& matrix, size_t block,
                       const std::vector<int32_t>& signed_weights, uint64_t total) {
  const BlockHistogram d = block_histogram(matrix, block, signed_weights);
  uint64_t best = UINT64_MAX;
  for (size_t l = 0; l < kBlock && block * kBlock + l < job.feature_count; ++l) {
    const auto f = static_cast<uint32_t>(block * kBlock + l);
    const PoolFeature& feature = job.features[f];
    if (feature.codes.lo == feature.codes.hi) continue;
    uint64_t mask = 0;
    const uint64_t agreement = job.problem->kind == WeakKind::kHist64
                                   ? histogram_agreement(&d[l * kBins], 1)
                                   : threshold_agreement(&d[l * kBins], 1, &mask);
    best = std::min(best, candidate_key(total - agreement + feature.cost_units, feature.n_tap, f));
  }
  return best;
}

/// Mask and agreement of the round's winner.
BoostRound describe_winner(const MatrixJob& job, const BinMatrix& matrix, uint32_t feature,
                           const std::vector<int32_t>& signed_weights, uint64_t total) {
  std::array<int32_t, kBins> d{};
  for (size_t i = 0; i < matrix.samples; ++i) {
    d[matrix.at(feature, i)] += signed_weights[i];
  }
  BoostRound round;
  round.found = true;
  round.feature = feature;
  round.total = total;
  round.bins = matrix.maps[feature];
  if (job.problem->kind == WeakKind::kHist64) {
    round.agreement = histogram_agreement(d.data(), 1);
    round.mask = histogram_mask(d.data(), 1, job.problem->empty_bins);
  } else {
    round.agreement = threshold_agreement(d.data(), 1, &round.mask);
  }
  return round;
}

std::vector<BoostRound> boost_node(const MatrixJob& job) {
  const BoostProblem& problem = *job.problem;
  const BinMatrix matrix = build_matrix(job);
  std::vector<double> weight(problem.weight.begin(), problem.weight.end());
  std::vector<int32_t> signed_weights(weight.size());
  std::vector<uint64_t> best(matrix.blocks, UINT64_MAX);
  std::vector<BoostRound> rounds;
  for (int t = 0; t < problem.rounds; ++t) {
    uint64_t total = 0;
    for (size_t i = 0; i < weight.size(); ++i) {
      signed_weights[i] = quantised_weight(weight[i], problem.positive[i] != 0);
      total += static_cast<uint64_t>(std::abs(signed_weights[i]));
    }
    parallel_for(job.threads, static_cast<int64_t>(matrix.blocks), 8, [&](int64_t a, int64_t b) {
      for (auto k = static_cast<size_t>(a); k < static_cast<size_t>(b); ++k) {
        best[k] = best_of_block(job, matrix, k, signed_weights, total);
      }
    });
    const uint64_t key = *std::min_element(best.begin(), best.end());
    if (key == UINT64_MAX) {
      rounds.emplace_back();
      return rounds;
    }
    const auto feature = static_cast<uint32_t>(key & 0xffffff);
    rounds.push_back(describe_winner(job, matrix, feature, signed_weights, total));
    const BoostRound& round = rounds.back();
    const double error = round.error();
    for (size_t i = 0; i < weight.size(); ++i) {
      const bool vote = (round.mask >> matrix.at(feature, i)) & 1;
      weight[i] = updated_weight(weight[i], vote == (problem.positive[i] != 0), error);
    }
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<BoostRound>> boost(const BoostJob& job) {
  const FeaturePool& pool = *job.pool;
  std::vector<std::vector<BoostRound>> results;
  for (const BoostProblem& problem : job.problems) {
    std::vector<PoolFeature> chosen;
    for (const uint32_t f : problem.features) chosen.push_back(pool.host[f]);
    const std::span<const PoolFeature> features =
        problem.features.empty() ? std::span(pool.host) : std::span(chosen);
    results.push_back(
        boost_node({features.data(), pool.taps.data(), features.size(), &problem, job.threads}));
  }
  return results;
}

}  // namespace larch::learning::cpu
