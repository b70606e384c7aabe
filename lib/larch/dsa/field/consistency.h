// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/core/context.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// Replaces vectors that contradict their neighbours (8, in volumes 26), and those of blocks that
/// were not searched: US 2008/0037845, 0078, 0079 and claim 9, for the literal method. In two
/// phases, so that no order counts: all are judged by the vectors that were found, then each that
/// is flagged becomes the mean of its neighbours that are not, and blocks without such neighbours
/// wait until theirs have been filled. `matches`: by frame and block; kBlockReplaced is set where
/// `vector` is that of neighbours. Where no block of a frame was searched, its vectors become 0.
void replace_inconsistent(const BlockGrid& grid, std::span<BlockMatch> matches,
                          const Context& context);

}  // namespace larch::dsa
