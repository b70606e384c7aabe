// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/dsa/field/warp.h"
#include "larch/dsa/match/match.h"

// Motion-corrected digital subtraction angiography of a sequence: one recipe for both devices.
namespace larch::dsa {

/// Holds what a sequence is subtracted with, on the host. Regions have a frame's pixels, not 0
/// where they count, or are empty: all count.
struct MaskInput {
  Vec3i size{};                                     ///< of a frame; z is 1 but for a volume
  std::vector<std::span<const uint16_t>> stored{};  ///< frames of the mask
  SampleTable table{};
  std::span<const uint8_t> region{};  ///< contrast pixels that count: region of interest, shutter
  std::span<const uint8_t> open{};    ///< mask pixels that count: what the shutter leaves open
  Vec3i start{};  ///< Q16: motion that is known before, in place of the frames' shifts
};

/// Holds what all frames of a sequence share, on the context's device; made once.
struct SequenceMask {
  SampleTable table{};
  Vec3i size{};
  Buffer<uint16_t> samples{};  ///< of the mask; kNoSample where it does not count
  Buffer<uint16_t> at_zero{};  ///< by filter_at_zero
  Buffer<uint16_t> values{};   ///< of the mask, every pixel with its value, for the output
  Buffer<uint8_t> region{};    ///< contrast pixels that count; empty: all
  Vec3i start{};               ///< Q16, as in MaskInput; Method::kNone subtracts after it
};
/// Tells whether frames of a mask are registered to each other before their mean is taken: where
/// the method finds blocks in pictures and is not the literal one.
bool registers_masks(const DsaConfig& config, const Vec3i& size);
SequenceMask make_mask(const MaskInput& input, const DsaConfig& config, const Context& context);
/// Copies a mask to the host.
SequenceMask on_host(const SequenceMask& mask);

/// Says what a frame is corrected by in the end.
enum class Correction : uint8_t {
  kBlocks,  ///< the vectors of its blocks, or nodes
  kShift,   ///< its rigid shift alone
  kNone,    ///< nothing
};

/// Figures of a subtracted frame.
struct FrameFigures {
  SubtractFigures subtracted{};
  FieldShape field{};                           ///< of the vectors that the frame was corrected by
  Correction correction = Correction::kBlocks;  ///< for Method::kBlock and kFlex
  int32_t edge_hits = 0;  ///< blocks of the first pass that are best at the edge of the window
  int32_t bin_shift = 0;  ///< bins were 2^bin_shift steps of a sample wide; 0 if none were made
};

/// The result of a batch of frames, on the host.
struct SubtractedFrames {
  std::vector<int16_t> difference{};
  std::vector<uint8_t> validity{};
  std::vector<Vec3f> field_px{};  ///< if it was asked for
  std::vector<BlockMatch>
      matches{};                 ///< by frame and block of the last pass; Method::kBlock, kFlex
  std::vector<Vec3i> vectors{};  ///< Q16, that the frames were corrected by, by frame and
                                 ///< block of correction_grid(); none for Method::kNone
  std::vector<FrameFigures> figures{};
  std::vector<Vec3i> shift{};      ///< the rigid translation of each frame, Q16
  std::vector<int16_t> shifted{};  ///< frames subtracted after that translation alone, if asked for
  std::vector<int16_t> uncorrected{};  ///< plain subtraction, if asked for
};

/// A batch of subtracted frames whose images are still on the device, frame after frame.
struct SubtractedBatch {
  SubtractedFrames frames{};  ///< without images
  Buffer<int16_t> difference{};
  Buffer<uint8_t> validity{};
  Buffer<Vec3f> field_px{};
  Buffer<int16_t> shifted{}, uncorrected{};
};

struct SequenceWants {
  bool field = false, shifted = false, uncorrected = false;
  /// SubtractedFrames::shift, which takes longer than a quick search of blocks. Without it shifts
  /// are 0, unless something else needs them: `shifted`, Method::kShift, and blocks
  /// that start at them or take them (registration.h).
  bool shift = true;
  std::optional<Vec3i> moved_by{};  ///< Q16: for Method::kNone, in place of SequenceMask::start
};

/// Returns what has no code for a card: "volumes", "flexible pixel shift"; empty: nothing.
std::string runs_on_cpu_alone(const DsaConfig& config, bool is_volume);

/// Registers the mask to some frames and subtracts it. `stored`: frame after frame, on the
/// context's device. Results do not depend on how a sequence is cut into batches. The images may be
/// written to until wait_for(context.device) returns. Throws DeviceError for what runs_on_cpu_alone
/// where that is CUDA.
SubtractedBatch subtract_on_device(const SequenceMask& mask, const Buffer<uint16_t>& stored,
                                   const DsaConfig& config, const SequenceWants& wants,
                                   const Context& context);

/// Takes a batch to the host and lets go of its images. `to` may hold an earlier batch, whose
/// memory is used again. In the queue of `device`, to which the images must be there.
void download(SubtractedBatch& batch, SubtractedFrames& to, const Device& device);

/// Both, from host to host.
SubtractedFrames subtract_frames(const SequenceMask& mask, std::span<const uint16_t> stored,
                                 const DsaConfig& config, const SequenceWants& wants,
                                 const Context& context);

/// Returns the grid of the last pass, to which SubtractedFrames::matches belong; for Method::kFlex
/// that of the nodes.
BlockGrid last_grid(const DsaConfig& config, const Vec3i& size);
/// Returns the grid of SubtractedFrames::vectors: last_grid, or one block for Method::kShift and
/// kNone.
BlockGrid correction_grid(const DsaConfig& config, const Vec3i& size);

/// Bytes of a frame of a batch.
struct FrameBytes {
  int64_t on_device = 0;  ///< while it is subtracted: stored pixels, what is made of them, images
  int64_t images = 0;     ///< of a SubtractedBatch
  int64_t figures = 0;    ///< of SubtractedFrames without images, on the host
};
FrameBytes bytes_per_frame(const DsaConfig& config, const Vec3i& size, const SequenceWants& wants);

}  // namespace larch::dsa
