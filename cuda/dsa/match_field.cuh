// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/dsa/block_samples.cuh"

namespace larch::dsa::cuda {

/// Whether match_over_field can do it: blocks of a usual size with scores that fit on chip.
bool can_match_over_field(const MatchArguments& a, const Device& device);
/// Searches blocks over a base field. `is_left`: per block, 1 for those that are not searched,
/// since the field varies too much below them for shared memory.
void match_over_field(const MatchArguments& a, uint8_t* is_left, const Device& device);

}  // namespace larch::dsa::cuda
