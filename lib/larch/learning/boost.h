// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_matrix.h"
#include "larch/learning/feature_source.h"
#include "larch/learning/weak_math.h"

namespace larch::learning {

/// The samples of one strong classifier and how to boost on them.
struct BoostProblem {
  const PreparedColumns* columns = nullptr;  ///< to choose from
  std::span<const uint32_t> samples;         ///< of the source
  std::span<const uint8_t> positive;         ///< one per sample
  std::span<const double> weight;            ///< one per sample, sum 1
  int rounds = 0;
  WeakKind kind = WeakKind::kHist64;
  int bins = kBins;  ///< 2 to 64
};

/// The winner of one round.
struct BoostRound {
  uint32_t feature = 0;    ///< column of the source
  uint64_t total = 0;      ///< sum of |quantised weights|
  uint64_t agreement = 0;  ///< weighted error = (total - agreement) / (2 total)
  uint64_t mask = 0;
  CodeMap codes;
  BinMap bins;
  bool found = false;  ///< false when no column varies

  LARCH_HD double error() const { return weighted_error(total, agreement); }
};

/// Discrete AdaBoost (Freund, Schapire 1997) with weak classifiers that vote by the bins of a
/// feature's value, on the feature matrix that `source` fills. Runs all rounds without asking
/// whether one is good enough; the caller truncates. Several problems, as those of the nodes of a
/// level, run together where that pays. Throws UsageError for a number of bins out of range, and
/// for a problem without samples, or without a class and a weight for each of them.
std::vector<std::vector<BoostRound>> boost(const FeatureSource& source,
                                           std::span<const BoostProblem> problems,
                                           const Context& context);
std::vector<BoostRound> boost(const FeatureSource& source, const BoostProblem& problem,
                              const Context& context);

/// How many samples the problems of one call should have together at most, unless it is one alone:
/// so many that the device has memory for them and a request to stop does not wait long.
size_t samples_at_once(const PreparedColumns& columns);

/// The operation on one device.
struct BoostJob {
  const FeatureSource& source;
  std::span<const BoostProblem> problems;
  const Context& context;
};
namespace cuda {
std::vector<std::vector<BoostRound>> boost(const BoostJob& job);
}

/// AdaBoost's rounds turned into weak classifiers with weights. Of a sample, H is the sum of their
/// alphas with the signs of their votes, and 1 / (1 + exp(-2 H)) its posterior (Friedman, Hastie,
/// Tibshirani 2000).
struct StrongClassifier {
  std::vector<WeakClassifier> weaks;  ///< `feature` is the column of the source
  std::vector<double> errors;         ///< weighted error of each round
};

/// Returns the weight of a weak classifier with this error, alpha = ln((1 - error) / error) / 2,
/// Q20, at most kMaximumAlphaQ20, which models may hold.
int32_t alpha_q20(double error);

/// Truncates the rounds where one is no better than `worst_error`, or after a perfect one.
/// `selected`: samples that they were trained on; no error counts as less than half of one.
StrongClassifier strong_classifier(std::span<const BoostRound> rounds, double worst_error,
                                   size_t selected);

}  // namespace larch::learning

namespace larch::learning::cpu {

/// Zooms the codes of each column onto so many bins, in place; the map of each slot.
std::vector<BinMap> zoom_codes(FeatureMatrix& matrix, int bins, int threads);

/// One histogram of signed weights for each column of a block: [column][bin].
using BlockHistogram = std::array<int32_t, kCpuWidth * kBins>;

/// Sums of the weights of the rows by bin, for all columns of a block.
BlockHistogram block_histogram(const FeatureMatrix& matrix, size_t block,
                               std::span<const int32_t> signed_weights);

}  // namespace larch::learning::cpu
