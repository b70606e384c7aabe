// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "larch/learning/boost.h"

namespace larch::learning::cpu {

/// Features of a block: so many histograms stay in the nearest cache.
constexpr size_t kBlock = 16;

/// One histogram of signed weights for each feature of a block.
using BlockHistogram = std::array<int32_t, kBlock * kBins>;  // [feature][bin]

/// Bins of the selected samples.
struct BinMatrix {
  size_t samples = 0, blocks = 0;
  std::unique_ptr<uint8_t[]> bins;  ///< [block][sample][kBlock], padded to whole blocks
  std::vector<BinMap> maps;         ///< [feature]

  uint8_t* row(size_t block, size_t sample) { return &bins[(block * samples + sample) * kBlock]; }
  const uint8_t* row(size_t block, size_t sample) const {
    return &bins[(block * samples + sample) * kBlock];
  }
  uint8_t at(size_t feature, size_t sample) const {
    return row(feature / kBlock, sample)[feature % kBlock];
  }
};

/// A problem and the features to choose from: those of problem->features, or all.
struct MatrixJob {
  const PoolFeature* features;
  const features::LinearTap* taps;
  size_t feature_count;
  const BoostProblem* problem;
  int threads;
};

/// The bins of the features of `job` at its samples, each feature zoomed to the codes that occur.
BinMatrix build_matrix(const MatrixJob& job);

/// Sums of the weights of the samples by bin, for all features of a block.
BlockHistogram block_histogram(const BinMatrix& matrix, size_t block,
                               std::span<const int32_t> signed_weights);

}  // namespace larch::learning::cpu
