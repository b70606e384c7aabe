// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/dsa/scores.h"

namespace larch::dsa {

/// EHD and entropy of the differences of whole frames; see score_frames.
void add_agreement(const ScoreBasis& basis, std::span<const uint16_t> stored,
                   const SubtractedFrames& frames, const DsaConfig& config, const Context& context,
                   std::vector<FrameScores>& scores);

}  // namespace larch::dsa
