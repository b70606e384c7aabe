// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/core/context.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// Finds the vectors of all blocks of each frame together, from what each block shows of its motion
/// (BlockMatch::found and ::bend): the least of
///
///   sum of (v - found)' A (v - found) over the blocks  +  sum of |D v|^2 / tau^2 over differences,
///
/// A the information of a block and D the second differences of neighbouring blocks, which are 0
/// where motion is affine. A block that sees one edge knows the motion across it; along the edge it
/// takes that of its neighbours. Differences are weighed as Cauchy's: motion may break.
///
/// `matches`: by frame and block of `grid`, found by a full search; `shifts`: the rigid translation
/// of each frame, Q16, which the motion of a picture fades to within two blocks outside of its
/// region of interest. Sets BlockMatch::vector and its deviations, kBlockUnreliable
/// and kBlockReplaced. Frames of which no block stands out from noise are not moved. Runs on the
/// host; the same bytes with any number of threads.
void solve_motion(const BlockGrid& grid, std::span<const Vec3i> shifts,
                  std::span<BlockMatch> matches, const Context& context);

}  // namespace larch::dsa
