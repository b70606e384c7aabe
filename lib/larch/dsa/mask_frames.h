// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/dsa/sequence.h"

// Several frames may be the mask of a sequence: they are moved to each other, or chosen from.
namespace larch::dsa {

/// Moves the frames of a mask of pictures to the last one of them by block matching. Each is
/// checked as a subtracted frame is (confirm_frames), and stays as it is unless EHD rises by 2 %
/// too: the mean of frames at rest is that of the frames as they are. Where a moved frame is read
/// from beyond its edge it takes the value of the last one. `samples` and `values`: of the frames
/// of `input`, before and after, on the host.
void register_mask_frames(const MaskInput& input, const DsaConfig& config,
                          std::vector<std::vector<uint16_t>>& samples,
                          std::vector<std::vector<uint16_t>>& values, const Context& context);

/// Frames that may be the mask, on the context's device.
class MaskCandidates {
 public:
  /// `input`: without frames; `stored`: those that may be the mask, frame after frame, of 16 pixels
  /// at least along each axis.
  MaskCandidates(MaskInput input, std::span<const uint16_t> stored, const Context& context);
  /// Returns the candidates that a stored frame is most like, the best one last: by EHD after the
  /// best shift, in frames made four times smaller, where noise hides less, with equal bins. With
  /// the best one come those, up to three, whose EHD is 9/10 of its at least; the first of equal
  /// ones.
  std::vector<size_t> best_of(std::span<const uint16_t> stored, const Context& context) const;

 private:
  const MaskInput input_;
  const SampleFrames samples_, at_zero_, small_at_zero_;
};

}  // namespace larch::dsa
