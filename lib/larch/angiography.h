// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/dsa/region.h"
#include "larch/dsa/scores.h"
#include "larch/dsa/sequence.h"

// Digital subtraction angiography: the mask, which is without contrast agent, is moved along with
// the patient and subtracted. Deuerling-Zheng, Eisenacher, Galant, Hornegger, Stamminger, US
// 2008/0037845 A1. Frames are counted from 0, places are pixels; regions have one byte for each
// pixel of a frame, not 0 where it counts, and are empty where all count.
namespace larch::dsa {

/// Contrast frames that share a mask.
struct MaskGroup {
  std::vector<int> mask_frames{};  ///< their mean is the mask; the others move to the last one
  std::vector<int> frames{};       ///< rising
  int averaging = 1;               ///< frames from each contrast frame on whose mean stands for it
  Vec3d shift_px{};                ///< by which the mask is moved: x to the right, y down
};

/// Returns all contrast frames, rising.
std::vector<int> frames_of(const std::vector<MaskGroup>& groups);
/// "1-3,7" of the frames 0, 1, 2 and 6, for people, who count from 1.
std::string frames_text(const std::vector<int>& frames);
/// "frame 7" or "frames 1-3,7".
std::string frame_words(const std::vector<int>& frames);

/// The mask is the mean of some frames; all others of `wanted` are contrast frames. Throws
/// InputError if none are left.
MaskGroup group_of_masks(const std::vector<int>& mask_frames, const std::vector<int>& wanted);

/// A sequence whose frames are read when they are needed.
struct FrameSource {
  std::string name{};  ///< for messages
  Vec3i size{};        ///< of a frame; z is 1
  int64_t frames = 0;
  StoredValues values{};           ///< what pixels mean, which begin at 0
  std::vector<double> times_ms{};  ///< of each frame; may be empty
  /// Reads frames `first` to `first + count - 1`, one after the other, x fastest, into `to`. Called
  /// by one thread at a time.
  std::function<void(int64_t first, int64_t count, std::span<uint16_t> to)> read{};

  size_t pixels() const { return static_cast<size_t>(size.x) * static_cast<size_t>(size.y); }
};

/// Holds what is asked for of a sequence.
struct SequenceRequest {
  FrameSource source{};
  DsaConfig config{};
  std::vector<int> wanted{};        ///< frames that are subtracted or are masks, rising
  std::vector<MaskGroup> groups{};  ///< of no common frame, by their first ones
  std::string mask_source{};        ///< what decided on the groups, for people
  /// The mask of the one group is the last frame before contrast agent arrives, all of `wanted` up
  /// to there with `chooses_masks`.
  bool finds_onset = false;
  /// Each contrast frame gets those mask frames, up to four, that it is most like; all of them are
  /// held at once.
  bool chooses_masks = false;
  std::vector<uint8_t> region{};   ///< where motion is searched
  std::vector<uint8_t> shutter{};  ///< what the collimator leaves open, where that is known
  bool finds_shutter = true;       ///< look for the collimator in frames unless `shutter` is given
  bool scores = true;              ///< measure frames: FrameRow::scores
  SequenceWants wants{};
  int batch_frames = 0;      ///< that are worked on at a time; 0: by memory
  int64_t memory_bytes = 0;  ///< of the frames in work at most; 0: 1 GiB or half of what is free
};

/// Frames of a batch and the bytes that the batches in flight take on the host.
struct BatchPlan {
  int frames = 1;
  bool overlaps = true;  ///< a batch is read and one is finished while another is computed
  int64_t bytes = 0;
};
/// Checks what is known before frames are read, and warns of what is odd. Throws UsageError for
/// values that the configuration does not take, and MemoryError if batches of one frame, or the
/// frames of a mask, take more than is allowed.
BatchPlan check_sequence(const SequenceRequest& request, const Context& context);

/// A sequence before its frames are subtracted.
struct PreparedSequence {
  std::vector<MaskGroup> groups{};
  std::vector<int> frames{};  ///< contrast frames, rising
  SampleTable table{};
  std::vector<uint8_t> region{};       ///< contrast pixels that count
  std::vector<uint8_t> unshuttered{};  ///< what the collimator leaves
  std::vector<std::string> notes{};    ///< what was decided, for people
  BatchPlan plan{};
  size_t batches = 0;
};

/// The blocks of a frame by their status; at_edge ones are of the first pass.
struct BlockCounts {
  int64_t all = 0, replaced = 0, unreliable = 0, outside = 0, at_edge = 0;

  /// Calls f(name, number) for each, by its name in reports.
  template <class F>
  void each(F&& f) const {
    f("blocks", all);
    f("replaced", replaced);
    f("unreliable", unreliable);
    f("outside", outside);
    f("edge_hits", at_edge);
  }
};
/// Counts the blocks of a frame.
BlockCounts count_blocks(std::span<const BlockMatch> matches, const FrameFigures& figures);

/// EHD, or the entropy of a histogram in natural units.
double similarity_of(const Score& score, Metric metric);

/// All figures of a subtracted frame.
struct FrameRow {
  int frame = 0;
  std::vector<int> mask_frames{};
  int averaging = 1;  ///< MaskGroup::averaging
  BlockCounts blocks{};
  /// Mean similarity of the blocks that were searched, at the start vector and at the vector found.
  double similarity_before = 0, similarity_after = 0;
  int64_t compared_blocks = 0;  ///< that have a similarity
  FrameFigures figures{};
  Vec3i shift{};  ///< Q16; 0 unless it is wanted
  FrameScores scores{};
};

/// Called once, before the first frames are taken; may be empty.
using BeginFrames = std::function<void(const PreparedSequence&)>;
/// Takes frames that follow each other, in their order, by one thread at a time.
using TakeFrames = std::function<void(std::span<const FrameRow>, const SubtractedFrames&)>;

/// Seconds that the stages of a sequence took. They overlap: each is the time of the thread that
/// does it, until its work on the device is done.
struct SequenceTimes {
  double read = 0, upload = 0, compute = 0, download = 0, score = 0, write = 0;
  double streaming = 0;                                   ///< all of these side by side
  double waited_for_reading = 0, waited_for_writing = 0;  ///< by the thread that computes
};

/// Finds collimator and masks as the request says, registers the masks to every contrast frame and
/// subtracts them, in batches, in the turn of the job (Context::turn): while one is computed the
/// next is read and uploaded, and the one before downloaded, scored and taken. Frames do not depend
/// on the batches, nor on device and threads. Throws InputError where nothing counts or no contrast
/// agent is found, UsageError for what the configuration cannot do with the values, MemoryError,
/// DeviceError, Stopped, and what `read`, `begin` and `take` throw. It throws UsageError for
/// regions of another size than a frame, too, and for frames that the sequence does not have.
SequenceTimes subtract_sequence(const SequenceRequest& request, const BeginFrames& begin,
                                const TakeFrames& take, const Context& context);

/// Tells whether frames are measured: for `scores`, or since they are checked.
bool measures_frames(const DsaConfig& config, bool scores);

/// Holds what is asked for of a volume. Both volumes are on one grid, their numbers of one range of
/// 16 bits. Contrast agent raises them.
struct VolumeRequest {
  std::string fill_name{}, mask_name{};  ///< for messages
  Volume<int32_t> fill{}, mask{};
  std::vector<uint8_t> region{};  ///< where motion is searched
  bool wants_field = false;
  DsaConfig config{};
};

/// Throws UsageError for what cannot be done with a volume of this size; warns of small blocks.
void check_volume_config(const DsaConfig& config, const Vec3i& size, const Context& context);

/// Registers the mask volume to the fill volume and subtracts it: US 2008/0037845, claims 11 and
/// 15; voxel by voxel, x fastest, with SubtractedFrames::uncorrected. In the turn of the job.
/// Throws InputError for a wider range of numbers, what check_volume_config throws, MemoryError.
SubtractedFrames subtract_volume(const VolumeRequest& request, const Context& context);

}  // namespace larch::dsa
