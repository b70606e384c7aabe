// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// Replaces vectors that contradict their neighbours, and those of unreliable and outside blocks,
/// in two phases, so that no order counts: all are judged by the vectors that were found, then each
/// that is flagged becomes the mean of its neighbours that are not (US 2008/0037845, claim 9).
/// Vectors that are reliable and consistent stay as they are. `matches`: by frame and block, on the
/// context's device. Where no block of a frame is reliable, its vectors become 0.
void replace_inconsistent(Buffer<BlockMatch>& matches, const BlockGrid& grid, int64_t frames,
                          const DsaConfig& config, const Context& context);

}  // namespace larch::dsa
