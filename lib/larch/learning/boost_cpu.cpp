// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/learning/boost.h"
#include "larch/learning/matrix_cpu.h"

namespace larch::learning::cpu {
namespace {

/// A problem with its matrix.
struct Node {
  const BoostProblem& problem;
  const std::vector<Slot>& slots;
  const FeatureMatrix& matrix;
  const std::vector<BinMap>& maps;
};

/// The bins of a column: row i is element i * kCpuWidth.
const uint8_t* bins_of(const FeatureMatrix& matrix, size_t slot) {
  return matrix.row(slot / kCpuWidth, 0) + slot % kCpuWidth;
}

/// The best column of a block in this round. In place of a column its slot stands in the key: both
/// have the same order.
uint64_t best_of_block(const Node& node, size_t block, const std::vector<int32_t>& signed_weights,
                       uint64_t total) {
  const BlockHistogram d = block_histogram(node.matrix, block, signed_weights);
  uint64_t best = UINT64_MAX;
  for (size_t l = 0; l < kCpuWidth; ++l) {
    const size_t at = block * kCpuWidth + l;
    const Slot& slot = node.slots[at];
    if (slot.column == kFilling || slot.codes.lo == slot.codes.hi) continue;
    uint64_t mask = 0;
    const uint64_t agreement = node.problem.kind == WeakKind::kHist64
                                   ? histogram_agreement(&d[l * kBins], 1)
                                   : threshold_agreement(&d[l * kBins], 1, &mask);
    best = std::min(best, candidate_key(total - agreement + slot.cost_units, slot.complexity,
                                        static_cast<uint32_t>(at)));
  }
  return best;
}

/// Mask and agreement of the round's winner.
BoostRound describe_winner(const Node& node, size_t at, const std::vector<int32_t>& signed_weights,
                           uint64_t total) {
  std::array<int32_t, kBins> d{};
  const uint8_t* bins = bins_of(node.matrix, at);
  for (size_t i = 0; i < signed_weights.size(); ++i) d[bins[i * kCpuWidth]] += signed_weights[i];
  BoostRound round;
  round.found = true;
  round.feature = node.slots[at].column;
  round.codes = node.slots[at].codes;
  round.total = total;
  round.bins = node.maps[at];
  if (node.problem.kind == WeakKind::kHist64) {
    round.agreement = histogram_agreement(d.data(), 1);
    round.mask = histogram_mask(d.data(), 1, node.problem.empty_bins);
  } else {
    round.agreement = threshold_agreement(d.data(), 1, &round.mask);
  }
  round.mask = repeat_last_bin(round.mask, node.problem.bins);
  return round;
}

std::vector<BoostRound> run_rounds(const Node& node, int threads) {
  const BoostProblem& problem = node.problem;
  const FeatureMatrix& matrix = node.matrix;
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
    const auto blocks = static_cast<int64_t>(matrix.blocks);
    parallel_for(threads, blocks, fair_grain(threads, blocks, 8), [&](int64_t a, int64_t b) {
      for (auto k = static_cast<size_t>(a); k < static_cast<size_t>(b); ++k) {
        best[k] = best_of_block(node, k, signed_weights, total);
      }
    });
    const uint64_t key = best.empty() ? UINT64_MAX : *std::min_element(best.begin(), best.end());
    if (key == UINT64_MAX) {
      rounds.emplace_back();
      return rounds;
    }
    const auto slot = static_cast<size_t>(key & 0xffffff);
    rounds.push_back(describe_winner(node, slot, signed_weights, total));
    const BoostRound& round = rounds.back();
    const double error = round.error();
    const uint8_t* bins = bins_of(matrix, slot);
    for (size_t i = 0; i < weight.size(); ++i) {
      const bool vote = (round.mask >> bins[i * kCpuWidth]) & 1;
      weight[i] = updated_weight(weight[i], vote == (problem.positive[i] != 0), error);
    }
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<BoostRound>> boost(const BoostJob& job) {
  std::vector<std::vector<BoostRound>> results;
  const int threads = job.context.threads;
  for (const BoostProblem& problem : job.problems) {
    FeatureMatrix matrix = fill_matrix(job.source, *problem.columns, problem.samples, job.context);
    const std::vector<BinMap> maps = zoom_codes(matrix, problem.bins, threads);
    results.push_back(run_rounds({problem, problem.columns->slots, matrix, maps}, threads));
  }
  return results;
}

}  // namespace larch::learning::cpu
