// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/dsa/block_samples.cuh"

namespace larch::dsa::cuda {

/// Whether match_directions can do it: conjugate directions throughout, without a base field, where
/// blocks and windows have at most the usual size.
bool can_match_directions(const MatchArguments& a);
void match_directions(const MatchArguments& a, const Device& device);

}  // namespace larch::dsa::cuda
