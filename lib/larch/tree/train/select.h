// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/tree/train/samples.h"
#include "larch/tree/tree_config.h"

namespace larch::tree {

/// Masses of the positive and negative samples of a list.
void sum_masses(const Samples& samples, const NodeSamples& list, uint64_t* positive,
                uint64_t* negative);

/// The subset a node is trained on: of each class at most so many of lowest hash, ascending.
std::vector<uint32_t> select_samples(const Samples& samples, const NodeSamples& list,
                                     const TreeConfig& config, uint64_t seed, uint64_t heap_index,
                                     int threads);

/// AdaBoost's starting weights of the selected samples, sum 1.
std::vector<double> initial_weights(const Samples& samples, const std::vector<uint32_t>& selected,
                                    const NodeSamples& list, Balance balance);

/// The `wanted` of lowest hash among the columns `from` of `all` columns, ascending. Empty stands
/// for all columns, in `from` and in the result.
std::vector<uint32_t> draw_columns(const std::vector<uint32_t>& from, size_t all, size_t wanted,
                                   uint64_t seed, uint64_t id);

}  // namespace larch::tree
