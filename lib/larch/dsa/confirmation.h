// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/dsa/scores.h"

// A frame's motion is compared with its rigid shift, and with no motion at all, before it is used.
namespace larch::dsa {

/// Tells whether frames are compared with their rigid shift: in pictures, unless the method is the
/// literal one.
bool confirms(const DsaConfig& config, const Vec3i& size);

/// Subtracts those frames again that are corrected better by their shift alone, or by nothing, and
/// says so: their images, vectors, figures and `scores` become those of that correction, and the
/// matches of their blocks have kBlockOfFrame. The measure is FrameScores::rms; EHD is measured
/// here, where it decides, if `basis` is of kind kSpread, so that both kinds decide alike. Frames
/// without a usable vector are corrected by their shift, or by nothing; a shift has to have a
/// higher EHD than nothing, by more than noise at its best shift has, 5 / sqrt(pixels). Does
/// nothing for the literal method, and for methods without blocks. `stored`, `frames`, `scores`: as
/// in score_frames.
void confirm_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                    SubtractedFrames& frames, std::vector<FrameScores>& scores,
                    const DsaConfig& config, const Context& context);

}  // namespace larch::dsa
