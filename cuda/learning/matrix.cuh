// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/learning/feature_matrix.h"

namespace larch::learning::cuda {

constexpr int kColumns = static_cast<int>(kCudaWidth);  ///< of a block of the matrix

/// A node: the rows [first, first + count) of the matrix, and of everything else that is by row.
struct NodeRows {
  int64_t first = 0, count = 0;
  int rounds = 0;
};

/// Zooms the codes of each column onto so many bins, node by node, in place; `nodes` on the device,
/// `maps` [node][slot].
void zoom_codes(FeatureMatrix& matrix, const Buffer<NodeRows>& nodes, int bins, BinMap* maps);

}  // namespace larch::learning::cuda
