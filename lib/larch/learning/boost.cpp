// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/boost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::learning::cpu {
namespace {

constexpr size_t kBlock = kCpuWidth;

/// Bytes that the loops over a block take together: four samples, for loops long enough to become
/// vector instructions. The last samples of a block are taken one by one.
constexpr size_t kRun = 4 * kBlock;
using Run = std::array<uint8_t, kRun>;

/// Smallest and largest code of each feature of a block.
void code_range(const FeatureMatrix& matrix, size_t block, Run& low, Run& high) {
  low.fill(255);
  high.fill(0);
  const uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.rows * kBlock;
  size_t i = 0;
  for (; i + kRun <= bytes; i += kRun) {
    for (size_t l = 0; l < kRun; ++l) {
      low[l] = std::min(low[l], at[i + l]);
      high[l] = std::max(high[l], at[i + l]);
    }
  }
  for (; i < bytes; ++i) {
    low[i % kBlock] = std::min(low[i % kBlock], at[i]);
    high[i % kBlock] = std::max(high[i % kBlock], at[i]);
  }
  for (size_t l = kBlock; l < kRun; ++l) {
    low[l % kBlock] = std::min(low[l % kBlock], low[l]);
    high[l % kBlock] = std::max(high[l % kBlock], high[l]);
  }
}

/// Zooms the codes of one block, in place; `maps`: of its columns.
void zoom_block(FeatureMatrix& matrix, size_t block, int bins, BinMap* maps) {
  Run low, high;
  code_range(matrix, block, low, high);
  std::array<uint16_t, kRun> scale;  // x >> s as (x * 2^(8 - s)) >> 8, which vectorises
  for (size_t l = 0; l < kRun; ++l) {
    low[l] = low[l % kBlock];
    const BinMap map = make_bin_map(low[l], high[l % kBlock], bins);
    if (l < kBlock) maps[l] = map;
    scale[l] = static_cast<uint16_t>(1u << (8 - map.shift));
  }
  const auto zoom = [](uint8_t code, uint8_t first, uint16_t factor) {
    const auto above = static_cast<uint16_t>(code - first);
    return static_cast<uint8_t>(static_cast<uint16_t>(above * factor) >> 8);
  };
  uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.rows * kBlock;
  size_t i = 0;
  for (; i + kRun <= bytes; i += kRun) {
    for (size_t l = 0; l < kRun; ++l) at[i + l] = zoom(at[i + l], low[l], scale[l]);
  }
  for (; i < bytes; ++i) at[i] = zoom(at[i], low[i % kBlock], scale[i % kBlock]);
}

/// Eight bytes as one number, the first one lowest: a single load where memory has that order.
uint64_t eight_bytes(const uint8_t* at) {
  uint64_t word = 0;
  for (int k = 0; k < 8; ++k) word |= static_cast<uint64_t>(at[k]) << (8 * k);
  return word;
}

}  // namespace

std::vector<BinMap> zoom_codes(FeatureMatrix& matrix, int bins, int threads) {
  std::vector<BinMap> maps(matrix.blocks * kBlock);
  const auto blocks = static_cast<int64_t>(matrix.blocks);
  parallel_for_each(threads, blocks, fair_grain(threads, blocks, 16),
                    [&](size_t block) { zoom_block(matrix, block, bins, &maps[block * kBlock]); });
  return maps;
}

BlockHistogram block_histogram(const FeatureMatrix& matrix, size_t block,
                               std::span<const int32_t> signed_weights) {
  BlockHistogram d{};
  const uint8_t* row = matrix.row(block, 0);
  for (const int32_t weight : signed_weights) {
    // Bins come out of words by shifts: a load for each would compete with those of the sums.
    for (size_t half = 0; half < kBlock; half += 8) {
      uint64_t word = eight_bytes(row + half);
      int32_t* at = &d[half * kBins];
      for (size_t l = 0; l < 8; ++l, word >>= 8) at[l * kBins + (word & 0xff)] += weight;
    }
    row += kBlock;
  }
  return d;
}

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

/// Returns the best column of a block in this round. In place of a column its slot stands in the
/// key: both have the same order.
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
    round.mask = histogram_mask(d.data(), 1);
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
    parallel_for_each(threads, blocks, fair_grain(threads, blocks, 8),
                      [&](size_t k) { best[k] = best_of_block(node, k, signed_weights, total); });
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

namespace larch::learning {
namespace {

constexpr Dispatch<std::vector<std::vector<BoostRound>>(const BoostJob&)> kBoost{
    "learning::boost", cpu::boost, LARCH_CUDA_FN(cuda::boost)};

void check(const BoostProblem& problem) {
  if (problem.bins < 2 || problem.bins > kBins) {
    throw UsageError("a weak classifier has 2 to " + std::to_string(kBins) + " bins, not " +
                     std::to_string(problem.bins));
  }
  const size_t samples = problem.samples.size();
  if (samples == 0 || problem.positive.size() != samples || problem.weight.size() != samples) {
    throw UsageError("boosting needs a class and a weight for each of at least one sample, not " +
                     std::to_string(problem.positive.size()) + " classes and " +
                     std::to_string(problem.weight.size()) + " weights for " +
                     std::to_string(samples) + " samples");
  }
}

}  // namespace

std::vector<std::vector<BoostRound>> boost(const FeatureSource& source,
                                           std::span<const BoostProblem> problems,
                                           const Context& context) {
  for (const BoostProblem& problem : problems) check(problem);
  return kBoost(source.device(), BoostJob{source, problems, context});
}

std::vector<BoostRound> boost(const FeatureSource& source, const BoostProblem& problem,
                              const Context& context) {
  return boost(source, {&problem, 1}, context).front();
}

size_t samples_at_once(const PreparedColumns& columns) {
  constexpr size_t kMaximumBytes = size_t{8} << 30;  // some tenths of a second on a large device
  const Device& device = columns.on_device.device();
  if (!device.is_cuda()) return 1;
  // A row of the matrix, and what else is by sample.
  const size_t bytes = columns.slots.size() + 17;
  return std::max<size_t>(1, std::min(kMaximumBytes, free_memory_bytes(device) / 2) / bytes);
}

int32_t alpha_q20(double error) {
  const double alpha = 0.5 * std::log((1 - error) / error) * (1 << kAlphaBits);
  return static_cast<int32_t>(std::llround(std::min<double>(alpha, kMaximumAlphaQ20)));
}

StrongClassifier strong_classifier(std::span<const BoostRound> rounds, double worst_error,
                                   size_t selected) {
  StrongClassifier strong;
  const double smallest = 1.0 / (2.0 * static_cast<double>(selected));
  for (const BoostRound& round : rounds) {
    if (!round.found) break;
    const double error = round.error();
    if (error >= worst_error) break;
    strong.weaks.push_back(
        {round.feature, round.codes, round.bins, round.mask, alpha_q20(std::max(error, smallest))});
    strong.errors.push_back(error);
    if (error < smallest) break;
  }
  return strong;
}

}  // namespace larch::learning
