// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/dsa/registration.h"
#include "larch/dsa/scores.h"

// What is found for blocks and frames is compared with the rigid shift of the frame, and with no
// motion at all, before it is used.
namespace larch::dsa {

/// One pass over a batch.
struct PassInput {
  const BlockGrid& grid;
  const SequenceMask& mask;
  const ComparedFrames& frames;
  const DsaConfig& config;
};

/// The job of a pass but for `out`; its range is that of the configuration.
MatchJob job_of(const PassInput& pass, const Buffer<int32_t>& bin_shift);

/// The dense field of vectors as blocks are matched over it.
class DenseBase {
 public:
  DenseBase(const BlockGrid& grid, const Buffer<Vec3i>& vectors, const DsaConfig& config,
            const Context& context);
  DenseBase(const DenseBase&) = delete;
  DenseBase& operator=(const DenseBase&) = delete;

  const BaseField& field() const { return field_; }

 private:
  BaseField field_;
  BlockGrid pixels_{};
  Buffer<Vec3i> at_pixels_{};
};

/// Tells whether blocks that were filled, and frames, are compared with the rigid shift: in
/// pictures, unless the method is the literal one.
bool confirms(const DsaConfig& config, const Vec3i& size);

/// Vectors that were taken from neighbours give way to the rigid shift of the frame where that fits
/// the block better: neighbours that move must not drag what stands still.
void confirm_replaced(const PassInput& pass, const Buffer<int32_t>& bin_shift,
                      Buffer<BlockMatch>& matches, const Context& context);

/// Subtracts those frames again that are corrected better by their shift alone, or by nothing, and
/// says so: their images, vectors, figures and `scores` become those of that correction, and the
/// matches of their blocks have kBlockOfFrame. The measure is FrameScores::rms. Frames without a
/// usable vector are corrected by their shift, or by nothing; a shift has to have a higher EHD than
/// nothing, by more than noise at its best shift has, 5 / sqrt(pixels). Does nothing for the
/// literal method, and for methods without blocks. `stored`, `frames`, `scores`: as in
/// score_frames.
void confirm_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                    SubtractedFrames& frames, std::vector<FrameScores>& scores,
                    const DsaConfig& config, const Context& context);

}  // namespace larch::dsa
