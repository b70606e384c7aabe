// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/dsa/sequence.h"

// How well frames were corrected, beside what plain subtraction and one translation per frame
// achieve. On the host.
namespace larch::dsa {

/// Figures of one subtracted frame. NaN where there is nothing to measure.
struct ImageScores {
  double ehd = 0;         ///< energy of the histogram of differences, US 2008/0037845, equation 3
  double entropy = 0;     ///< its entropy in nepers, equation 1
  double rms = 0;         ///< grey values, about the median, of pixels away from vessels
  double mad = 0;         ///< median absolute deviation of the same pixels
  double edge_index = 0;  ///< mean |S| at the mask's edges over that elsewhere, away from vessels
  double vessel_cnr = 0;  ///< |mean of vessels - mean around them| / standard deviation there
};

struct FrameScores {
  ImageScores uncorrected{}, shifted{}, corrected{};
  int64_t counted_pixels = 0;  ///< that are valid, and whose mask counts, in all three images
  int64_t vessel_pixels = 0;   ///< of these: vessels and what lies within 3 pixels
};

enum class ScoreKind : uint8_t {
  kAll,
  kSpread,  ///< rms, mad and the pixels: what frames are checked by, at a small part of the cost
};

/// Holds what the frames of a sequence are scored against; made once.
struct ScoreBasis {
  SequenceMask mask{};  ///< on the host
  ScoreKind kind = ScoreKind::kAll;
  std::vector<uint8_t> edges{};  ///< 1 at the twentieth of pixels where the mask is steepest
};
/// `mask`: on the host.
ScoreBasis make_score_basis(SequenceMask mask, const Context& context,
                            ScoreKind kind = ScoreKind::kAll);

/// Scores of frames, by frame, of the kind of `basis`. `stored`: as they were subtracted; `frames`:
/// pictures, with shifted and uncorrected.
///
/// All three images of a frame are measured at the same pixels. For EHD and entropy that are those
/// where contrast and mask count in each of them, whatever the configuration samples with: contrast
/// by the taps of gain_taps() at fraction 0, the mask by those at its displacement, so that noise
/// is the same in all. For the others they are the valid ones, less those whose mask
/// lies beyond the picture or does not count (collimator, saturation) in any of the images; vessels
/// are left out: further than 4 times 1.4826 MAD from the median on the side of contrast agent in
/// any of the images, and 3 pixels around. What is as far on the other side is no vessel, and
/// stays: no correction may hide what it has made. Of the vessels themselves, those that are in all
/// three images count for vessel_cnr, and what lies 4 to 8 pixels around them is their
/// surroundings.
std::vector<FrameScores> score_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                                      const SubtractedFrames& frames, const DsaConfig& config,
                                      const Context& context);

}  // namespace larch::dsa
