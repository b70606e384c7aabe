// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/pbt/train/trees.h"
#include "larch/tree/train/grow.h"

namespace larch::pbt {

/// False positives that wait for a common walk to their nodes at most.
constexpr int64_t kMinedAtOnce = int64_t{1} << 20;

/// Mines voxels that the tree so far takes for the class, from the volumes that the tree is trained
/// on: of each node those of lowest hash. `occurrences`: how often each volume counts, or empty;
/// `seed`: of the tree. What it refers to outlives the miner.
tree::Miner make_miner(Material& material, const Model& start,
                       const std::vector<uint32_t>& occurrences, uint64_t seed,
                       const Context& context);

}  // namespace larch::pbt
