// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/learning/feature_matrix.h"

namespace larch::learning::cpu {

/// Zooms the codes of each column onto so many bins, in place; the map of each slot.
std::vector<BinMap> zoom_codes(FeatureMatrix& matrix, int bins, int threads);

/// One histogram of signed weights for each column of a block: [column][bin].
using BlockHistogram = std::array<int32_t, kCpuWidth * kBins>;

/// Sums of the weights of the rows by bin, for all columns of a block.
BlockHistogram block_histogram(const FeatureMatrix& matrix, size_t block,
                               std::span<const int32_t> signed_weights);

}  // namespace larch::learning::cpu
