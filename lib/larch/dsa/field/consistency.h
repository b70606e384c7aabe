// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// Replaces vectors that contradict their neighbours, and those of unreliable and outside blocks,
/// in two phases, so that no order counts: all are judged by the vectors that were found, then each
/// that is flagged becomes the mean of its neighbours that are not (US 2008/0037845, claim 9), and
/// blocks without such neighbours wait until theirs have been filled. A vector whose neighbours
/// were searched, three of them at least, and are all unreliable is replaced as well: nothing
/// confirms it. Others that are reliable and consistent stay as they are. Without
/// config.outlier_unreliable, unreliable blocks are as good as any others. `matches`: by frame and
/// block, on the context's device; kBlockReplaced is set where `vector` is that of neighbours.
/// Where no block of a frame is reliable, its vectors become 0.
void replace_inconsistent(Buffer<BlockMatch>& matches, const BlockGrid& grid, int64_t frames,
                          const DsaConfig& config, const Context& context);

/// The vectors of matches, Q16, which the dense field is made of. On the context's device.
Buffer<Vec3i> field_vectors(const Buffer<BlockMatch>& matches, const Context& context);

/// replace_inconsistent; pointers are of one device. For each frame: begin_judging, judge,
/// end_judging of all blocks, each after the one before is done, fill_from_neighbours of all in
/// round 1, 2, ... until a round fills none, and fill_with_zero. See consistency_math.h.
struct ConsistencyJob {
  FieldAxis axes[3]{};
  BlockMatch* matches = nullptr;  ///< by frame and block
  int64_t frames = 0;
  bool tolerates = true;
  bool drops_unreliable = true;
  int32_t* known_since = nullptr;  ///< by frame and block; for the operation alone
};

/// field_vectors; pointers are of one device.
struct VectorsJob {
  const BlockMatch* matches = nullptr;
  int64_t count = 0;
  Vec3i* vectors = nullptr;
};

namespace cpu {
void replace_inconsistent(const ConsistencyJob& job, const Context& context);
void field_vectors(const VectorsJob& job, const Context& context);
}  // namespace cpu
namespace cuda {
void replace_inconsistent(const ConsistencyJob& job, const Context& context);
void field_vectors(const VectorsJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
