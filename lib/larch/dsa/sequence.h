// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "larch/dsa/field/warp.h"
#include "larch/dsa/match/match.h"

// Motion-corrected digital subtraction angiography of a sequence: one recipe for both devices.
namespace larch::dsa {

/// What all frames of a sequence share, on the context's device; made once.
struct SequenceMask {
  SampleTable table{};
  Vec3i size{};
  Buffer<uint16_t> samples{};  ///< of the mask; kNoSample where it is saturated or outside
  Buffer<uint16_t> at_zero{};  ///< by filter_at_zero
  Buffer<uint16_t> values{};   ///< of the mask, every pixel with its value, for the output
  Buffer<uint8_t> region{};    ///< pixels that count; empty: all
};
/// `stored`: the frames of the mask.
SequenceMask make_mask(std::span<const std::span<const uint16_t>> stored, const Vec3i& size,
                       const SampleTable& table, std::span<const uint8_t> region,
                       const DsaConfig& config, const Context& context);

/// The result of a batch of frames, on the host.
struct SubtractedFrames {
  std::vector<int16_t> difference{};
  std::vector<uint8_t> validity{};
  std::vector<Vec3f> field_px{};      ///< if it was asked for
  std::vector<BlockMatch> matches{};  ///< of the last pass
  std::vector<FrameFigures> figures{};
  std::vector<Vec3i> shift{};      ///< the rigid translation of each frame, Q16
  std::vector<int16_t> shifted{};  ///< frames subtracted after that translation alone, if asked for
  std::vector<int16_t> uncorrected{};  ///< plain subtraction, if asked for
};

struct SequenceWants {
  bool field = false, shifted = false, uncorrected = false;
};

/// Registers the mask to some frames and subtracts it. `stored`: frame after frame. Results do not
/// depend on how a sequence is cut into batches, unless config.init is kPrevious: then `previous`
/// (the vectors of the last pass of the frame before, updated by the call) carries on.
SubtractedFrames subtract_frames(const SequenceMask& mask, std::span<const uint16_t> stored,
                                 const DsaConfig& config, const SequenceWants& wants,
                                 std::vector<Vec3i>& previous, const Context& context);

/// The grid of the last pass, to which SubtractedFrames::matches belong.
BlockGrid last_grid(const DsaConfig& config, const Vec3i& size);

}  // namespace larch::dsa
