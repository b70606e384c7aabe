// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/core/context.h"
#include "larch/dsa/match/match.h"

// The method of US 2008/0037845 to the letter: one round of conjugate directions from zero, bins of
// one grey value, clamped, pixels of the edge beyond the image, linear sampling, vectors judged by
// ratio and angle. Of what the patent does not speak of, bins around the median of a block's
// differences and pixels that do not count stay.
namespace larch::dsa {

/// Finds the displacement of every block of every frame, of pictures or volumes: ibid., 0055 to
/// 0063 and claim 1. The job has no base field, and no filtered mask.
void match_literally(const MatchJob& job, const Context& context);

/// Replaces vectors that contradict their neighbours (8, in volumes 26), and those of blocks that
/// were not searched: ibid., 0078, 0079 and claim 9. In two phases, so that no order counts: all
/// are judged by the vectors that were found, then each that is flagged becomes the mean of its
/// neighbours that are not, and blocks without such neighbours wait until theirs have been filled.
/// `matches`: by frame and block; kBlockReplaced is set where `vector` is that of neighbours. Where
/// no block of a frame was searched, its vectors become 0.
void replace_inconsistent(const BlockGrid& grid, std::span<BlockMatch> matches,
                          const Context& context);

namespace cuda {
void match_literally(const MatchJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
