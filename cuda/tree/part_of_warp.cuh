// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace larch::tree::cuda {

/// The lanes that evaluate an item together (as tree::OneLane). Where items are few and trees are
/// long, most of a GPU is idle with one thread for each, and a warp has 32 paths through the trees
/// in place of 4.
struct PartOfWarp {
  static constexpr int32_t kCount = 8;
  __device__ int32_t index() const { return static_cast<int32_t>(threadIdx.x) % kCount; }
  __device__ int32_t sum(int32_t votes) const {
    const uint32_t first = threadIdx.x % 32 / kCount * kCount;
    return __reduce_add_sync(((1U << kCount) - 1) << first, votes);
  }
};

}  // namespace larch::tree::cuda
