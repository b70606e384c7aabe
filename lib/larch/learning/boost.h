// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/features/haar.h"
#include "larch/image/integral.h"
#include "larch/learning/weak_classifier.h"

namespace larch::learning {

/// A feature of the pool as kernels read it.
struct PoolFeature {
  int32_t first_tap = 0;
  uint16_t n_tap = 0;
  uint16_t channel = 0;
  uint32_t cost_units = 0;  ///< price of the taps in units of candidate_key
  CodeMap codes;
};

/// Features, their taps for the strides of the training images, and (once ranged) their code maps,
/// all on one device.
struct FeaturePool {
  Buffer<PoolFeature> features;
  Buffer<features::LinearTap> taps;
  std::vector<PoolFeature> host;  ///< the same features
  std::vector<features::LinearTap> host_taps;
  std::vector<image::IntegralLayout> layouts;     ///< of the channels that the taps refer to
  mutable std::shared_ptr<const void> columns{};  ///< what a device keeps for these features:
  mutable std::vector<uint32_t> columns_of{};     ///< empty: all
};
FeaturePool make_feature_pool(const std::vector<features::HaarFeature>& pool,
                              std::span<const image::IntegralLayout> layouts, double tap_cost,
                              const Context& context);

/// Where the samples of a call lie: for selected sample k and channel c the integral element
/// integral[bases[c * sample_count + index[k]]].
struct SamplePlaces {
  const uint32_t* integral = nullptr;
  const int64_t* bases = nullptr;
  size_t sample_count = 0;
  std::span<const uint32_t> index;  ///< host
};

/// Gives every feature of the pool its code map: the order statistics floor(0.001 (n - 1)) and
/// floor(0.999 (n - 1)) of its values over the given samples. A feature with equal statistics is
/// never chosen.
void range_pool(FeaturePool& pool, const SamplePlaces& places, const Context& context);

/// The samples of one node and how to boost on them.
struct BoostProblem {
  SamplePlaces places;
  std::span<const uint32_t> features;  ///< host, ascending pool indices; empty: the whole pool
  std::span<const uint8_t> positive;   ///< host, one a selected sample
  std::span<const double> weight;      ///< host, sum 1
  int rounds = 0;
  WeakKind kind = WeakKind::kHist64;
  EmptyBins empty_bins = EmptyBins::kNearest;
};

/// The winner of one round.
struct BoostRound {
  uint32_t feature = 0;
  uint64_t total = 0;      ///< sum of |quantised weights|
  uint64_t agreement = 0;  ///< weighted error = (total - agreement) / (2 total)
  uint64_t mask = 0;
  BinMap bins;
  bool found = false;  ///< false when no feature varies

  LARCH_HD double error() const { return weighted_error(total, agreement); }
};

/// Discrete AdaBoost (Freund, Schapire 1997) with weak classifiers that vote by 64 bins of a
/// feature's value. Runs all rounds without asking whether one is good enough; the caller
/// truncates. Several problems, as those of the nodes of a level, run together where that pays.
std::vector<std::vector<BoostRound>> boost(const FeaturePool& pool,
                                           std::span<const BoostProblem> problems,
                                           const Context& context);
std::vector<BoostRound> boost(const FeaturePool& pool, const BoostProblem& problem,
                              const Context& context);

/// How many samples the problems of one call should have together at most, unless it is one alone:
/// so many that the device has memory for them and a request to stop does not wait long.
size_t samples_at_once(const FeaturePool& pool);

/// The same two operations on one device.
struct RangeJob {
  const PoolFeature* features;
  const features::LinearTap* taps;
  size_t feature_count;
  SamplePlaces places;
  int threads;
  int device_index;
};
struct BoostJob {
  const FeaturePool* pool;
  std::span<const BoostProblem> problems;
  int threads;
  int device_index;
};
namespace cpu {
/// lo, hi of each feature.
std::vector<CodeMap> range_pool(const RangeJob& job);
std::vector<std::vector<BoostRound>> boost(const BoostJob& job);
}  // namespace cpu
namespace cuda {
std::vector<CodeMap> range_pool(const RangeJob& job);
std::vector<std::vector<BoostRound>> boost(const BoostJob& job);
}  // namespace cuda

/// Ranks of the order statistics that bound a code map.
LARCH_HD size_t low_rank(size_t n) {
  return (n - 1) / 1000;
}
LARCH_HD size_t high_rank(size_t n) {
  return (n - 1) - (n - 1) / 1000;
}

}  // namespace larch::learning
