// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/dsa/field/field.h"
#include "larch/dsa/registration.h"
#include "larch/dsa/sampling/block_samples.h"
#include "larch/dsa/scores.h"

namespace larch::dsa {

/// EHD and entropy of the differences of whole frames; see score_frames. Made for frames, which
/// must outlive it.
class ImageAgreement {
 public:
  /// By frame: `stored` pixels, rigid `shifts`, and `vectors` that the frames were corrected by.
  ImageAgreement(const ScoreBasis& basis, std::span<const uint16_t> stored,
                 std::span<const Vec3i> shifts, std::span<const Vec3i> vectors,
                 const DsaConfig& config, const Context& context);
  /// Compares a frame, filtered at fraction 0, with the mask in its three places, at the pixels
  /// that all of them have: fills ehd and entropy of its images. Several threads may ask.
  void measure(size_t frame, FrameScores& out) const;

 private:
  const SequenceMask& mask_;
  std::span<const uint16_t> stored_{};
  std::span<const Vec3i> shifts_{};
  const DsaConfig config_;
  DenseVectors corrected_{};
  cpu::ImagePart around_{};  // the mask with samples around it, which all frames read
};

// A frame's motion is compared with its rigid shift, and with no motion at all, before it is used.

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
