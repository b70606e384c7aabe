// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "larch/dsa/field/field.h"
#include "larch/dsa/scores.h"

namespace larch::dsa {

/// Where the mask lies in one kind of image: a grid on the host, and the vectors of all frames.
struct AgreementPlace {
  FieldGrid grid{};
  BorderField border = BorderField::kClamp;
  std::span<const Vec3i> all{};  ///< empty: nothing is moved
  int32_t blocks = 1;
  std::vector<AxisWeights> columns{};
};

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
  const DsaConfig config_;
  Buffer<Vec3i> at_pixels_{};  // of a spline
  std::array<AgreementPlace, 3> places_{};
};

}  // namespace larch::dsa
