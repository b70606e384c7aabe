// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/block_search.h"
#include "larch/dsa/sampling/volume_samples.h"

namespace larch::dsa::cpu {

void match_blocks(const MatchJob& job, const Context& context) {
  search_blocks<BlockSamples>(job, context);
}

void match_volume(const MatchJob& job, const Context& context) {
  search_blocks<VolumeSamples>(job, context);
}

}  // namespace larch::dsa::cpu
