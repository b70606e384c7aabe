// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/preparation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/text.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/mask_frames.h"

namespace larch::dsa {
namespace {

constexpr int32_t kCells = 128;  // along the shorter side
constexpr int32_t kAround = 6;   // cells on each side that make the background
constexpr int32_t kApart = 3;    // cells that are left out beside those that do not count
constexpr size_t kShare = 500;   // one cell in so many is extreme,
constexpr size_t kMinimum = 8;   // so many at least
constexpr double kDarker = 1.25;
constexpr size_t kLasting = 10, kMinimumLasting = 2;  // frames,
constexpr size_t kDarkOnes = 8, kOf = 10;             // of which so many are darker

/// A frame made smaller.
struct Cells {
  int32_t width = 0, height = 0;
  std::vector<double> means{};
  std::vector<uint8_t> counts{};

  size_t at(int32_t x, int32_t y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
  }
  /// Calls body(cell) for those within `reach` of a cell, itself included, along both axes.
  template <class Body>
  void around(int32_t x, int32_t y, int32_t reach, const Body& body) const {
    for (int32_t j = std::max(0, y - reach); j <= std::min(height - 1, y + reach); ++j) {
      for (int32_t i = std::max(0, x - reach); i <= std::min(width - 1, x + reach); ++i) {
        body(at(i, j));
      }
    }
  }
};

Cells make_cells(std::span<const int16_t> difference, std::span<const uint8_t> validity,
                 const Vec3i& size) {
  const int32_t side = std::max(1, (std::min(size.x, size.y) + kCells / 2) / kCells);
  Cells cells{size.x / side, size.y / side, {}, {}};
  for (int32_t y = 0; y < cells.height; ++y) {
    for (int32_t x = 0; x < cells.width; ++x) {
      int64_t sum = 0, count = 0;
      for (int32_t j = 0; j < side; ++j) {
        const size_t row = static_cast<size_t>(y * side + j) * static_cast<size_t>(size.x);
        for (size_t i = 0; i < static_cast<size_t>(side); ++i) {
          const size_t pixel = row + static_cast<size_t>(x * side) + i;
          if (validity[pixel] > static_cast<uint8_t>(Validity::kBeyondMask)) continue;
          sum += difference[pixel];
          ++count;
        }
      }
      cells.counts.push_back(2 * count >= int64_t{side} * side ? 1 : 0);
      cells.means.push_back(count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0);
    }
  }
  return cells;
}

}  // namespace

Extremes extremes_of(std::span<const int16_t> difference, std::span<const uint8_t> validity,
                     const Vec3i& size) {
  const Cells cells = make_cells(difference, validity, size);
  std::vector<double> heights, background;
  for (int32_t y = 0; y < cells.height; ++y) {
    for (int32_t x = 0; x < cells.width; ++x) {
      bool is_inside = true;
      cells.around(x, y, kApart,
                   [&](size_t cell) { is_inside = is_inside && cells.counts[cell] != 0; });
      if (!is_inside) continue;
      background.clear();
      cells.around(x, y, kAround, [&](size_t cell) {
        if (cells.counts[cell] != 0) background.push_back(cells.means[cell]);
      });
      const auto middle = background.begin() + static_cast<ptrdiff_t>(background.size() / 2);
      std::nth_element(background.begin(), middle, background.end());
      heights.push_back(cells.means[cells.at(x, y)] - *middle);
    }
  }
  if (heights.empty()) return {};
  std::sort(heights.begin(), heights.end());
  const auto n =
      static_cast<ptrdiff_t>(std::min(heights.size(), std::max(kMinimum, heights.size() / kShare)));
  const double dark = std::accumulate(heights.begin(), heights.begin() + n, 0.0);
  const double bright = std::accumulate(heights.end() - n, heights.end(), 0.0);
  return {std::max(0.0, -dark / static_cast<double>(n)),
          std::max(0.0, bright / static_cast<double>(n))};
}

std::optional<size_t> find_onset(std::span<const Extremes> frames, bool are_all) {
  const auto is_darker = [](const Extremes& e) { return e.dark > kDarker * e.bright; };
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t count = std::min(kLasting, frames.size() - i);
    if ((count < kLasting && !are_all) || count < kMinimumLasting) break;
    const auto window = frames.subspan(i, count);
    const auto darker = std::count_if(window.begin(), window.end(), is_darker);
    if (is_darker(frames[i]) && kOf * static_cast<size_t>(darker) >= kDarkOnes * count) return i;
  }
  return std::nullopt;
}

namespace {

/// Frames of a batch at most. More of them keep a device no busier, and the first batch is waited
/// for before anything is computed, the last one while nothing is.
constexpr int kDeviceBatch = 8, kMaximumBatch = 64;
/// Measuring frames takes so many times the bytes of stored pixels: samples, filtered samples and
/// their passes, seven labels of each pixel, and a vector of a spline.
constexpr int64_t kScoreBytes = 14;
/// Frames of a mask take so many times the bytes of their stored pixels: samples, and values or
/// filtered samples, beside these and a copy of these.
constexpr int64_t kMaskBytes = 4;
/// Batches take this much where no promise is made.
constexpr int64_t kUsualBytes = int64_t{1} << 30;
/// Smaller pictures do not move (dsa::rigid_shifts).
constexpr int32_t kMinimumForChoice = 16;
/// Frames that are subtracted at a time while the onset of contrast agent is looked for.
constexpr size_t kOnsetBatch = 8;
/// Contrast agent fills few pixels before it is clear: the mask is so many frames and so many
/// milliseconds before.
constexpr size_t kFramesBefore = 2;
constexpr double kBeforeMs = 200;

/// Frames that the collimator is looked for in, evenly spread.
constexpr int64_t kShutterFrames = 16;
/// Pictures that are smaller have no room for a collimator.
constexpr int32_t kMinimumForShutter = 64;
/// Grey values of 12 bits: what varies less within 15 x 15 pixels lies behind the collimator.
constexpr double kMinimumDeviation = 2;
constexpr double kMinimumDeviationOfAll = 0.5;  ///< grey values, whatever the bits
/// Grey values of 12 bits: what is brighter does not lie behind the collimator.
constexpr double kDark = 256;

/// Histograms of blocks below this side are noisy, and their peaks often wrong.
constexpr int kSmallBlock = 32;
void warn_of_small_blocks(const DsaConfig& config, const Context& context) {
  if (config.method != Method::kBlock && config.method != Method::kFlex) return;
  const auto passes = passes_of(config, /*is_volume=*/false);
  const int least =
      std::min_element(passes.begin(), passes.end(), [](const auto& a, const auto& b) {
        return a.block < b.block;
      })->block;
  if (least >= kSmallBlock) return;
  context.warn("blocks of " + std::to_string(least) + " pixels have few differences to compare; " +
               "below " + std::to_string(kSmallBlock) + " pixels many vectors are wrong");
}

ShutterRule shutter_rule(const StoredValues& values, int64_t frames) {
  const double grey = std::ldexp(1, values.bits - 12);  // of 12 bits
  ShutterRule rule;
  rule.frames = static_cast<int32_t>(frames);
  rule.flat = std::max(kMinimumDeviationOfAll, kMinimumDeviation * grey);
  rule.flat_where_dark = std::max(kMinimumDeviation, kMinimumDeviation * grey);
  rule.dark = kDark * grey;
  if (values.is_inverted) rule.top = std::ldexp(1, values.bits) - 1;
  return rule;
}

/// Finds what the collimator leaves, and says what it covers.
void open_shutter(const SequenceRequest& request, PreparedSequence& prepared,
                  const Context& context) {
  const FrameSource& source = request.source;
  const bool is_small = std::min(source.size.x, source.size.y) < kMinimumForShutter;
  std::vector<uint8_t> open = request.shutter;
  const bool is_given = !open.empty();
  if (!is_given && (!request.finds_shutter || is_small)) return;
  const int64_t taken = std::min(source.frames, kShutterFrames);
  std::vector<uint16_t> frame(source.pixels());
  std::vector<uint32_t> sum(frame.size());
  for (int64_t i = 0; i < taken; ++i) {
    source.read(i * source.frames / taken, 1, frame);
    for (size_t p = 0; p < sum.size(); ++p) sum[p] += frame[p];
  }
  if (!is_given) open = find_shutter(sum, source.size, shutter_rule(source.values, taken));
  const int32_t blurred = blurred_edge(sum, source.size, open);
  narrow_open(open, source.size, blurred);
  const auto all = static_cast<int64_t>(open.size()), covered = all - count_inside(open);
  if (covered == 0) return;
  prepared.notes.push_back(
      formatted("shutter: %s, covers %.1f %% of the frame with %d px of blurred edge",
                is_given ? "that of the file" : "found",
                100.0 * static_cast<double>(covered) / static_cast<double>(all), blurred));
  context.info(prepared.notes.back());
  prepared.unshuttered = std::move(open);
}

/// Region of interest and shutter.
void find_region(const SequenceRequest& request, PreparedSequence& prepared,
                 const Context& context) {
  open_shutter(request, prepared, context);
  std::vector<uint8_t> region = request.region;
  if (region.empty()) region = whole_region(request.source.size);
  if (!prepared.unshuttered.empty()) keep_common(region, prepared.unshuttered);
  const int64_t inside = require_inside(region, request.source.name);
  if (inside < static_cast<int64_t>(region.size())) prepared.region = std::move(region);
}

/// Returns the first of the frames `wanted` as the mask of the others.
SequenceMask first_as_mask(const SequenceRequest& request, const PreparedSequence& prepared,
                           std::vector<uint16_t>& stored, const Context& context) {
  MaskInput input = mask_input(request, prepared);
  if (!prepared.unshuttered.empty()) fill_covered(stored, input.size, prepared.unshuttered);
  input.stored = {stored};
  return make_mask(input, {}, context);
}

/// Returns the last of the frames `wanted`, by its place among them, that is surely free of
/// contrast agent: all are subtracted from the first of them, corrected for motion by blocks
/// whatever the method of the run is, until contrast agent has darkened them for good.
size_t frame_before_onset(const SequenceRequest& request, const PreparedSequence& prepared,
                          const Context& context) {
  const FrameSource& source = request.source;
  const std::vector<int>& wanted = request.wanted;
  const size_t pixels = source.pixels();
  std::vector<uint16_t> stored(pixels);
  source.read(wanted.front(), 1, stored);
  const SequenceMask mask = first_as_mask(request, prepared, stored, context);
  std::vector<Extremes> extremes;
  DsaConfig config;  // large blocks suffice
  config.passes = "64/64";
  config.allows_spline = false;
  std::optional<size_t> onset;
  for (size_t first = 1; first < wanted.size() && !onset; first += kOnsetBatch) {
    context.throw_if_stopped("stopped while the mask was looked for");
    const size_t count = std::min(kOnsetBatch, wanted.size() - first);
    stored.resize(count * pixels);
    for (size_t i = 0; i < count; ++i) {
      source.read(wanted[first + i], 1, std::span(stored).subspan(i * pixels, pixels));
    }
    SequenceWants wants;
    wants.shift = false;
    const SubtractedFrames batch = subtract_frames(mask, stored, config, wants, context);
    const std::span<const int16_t> difference(batch.difference);
    const std::span<const uint8_t> validity(batch.validity);
    std::vector<Extremes> found(count);
    parallel_for_each(context.threads, static_cast<int64_t>(count), 1, [&](size_t i) {
      found[i] = extremes_of(difference.subspan(i * pixels, pixels),
                             validity.subspan(i * pixels, pixels), source.size);
    });
    extremes.insert(extremes.end(), found.begin(), found.end());
    onset = find_onset(extremes, first + count == wanted.size());
  }
  if (!onset) {
    throw InputError("'" + source.name +
                     "': there is no frame from which on contrast agent clearly darkens " +
                     frame_words(wanted) + " for good; name frames without it with --mask-frames");
  }
  const size_t clear = *onset + 1;
  size_t before = std::min(kFramesBefore, clear);
  const auto time = [&](size_t i) { return source.times_ms[static_cast<size_t>(wanted[i])]; };
  while (!source.times_ms.empty() && before < clear &&
         time(clear) - time(clear - before) < kBeforeMs) {
    ++before;
  }
  return clear - before;
}

/// The masks of the request, or those before contrast agent arrives, and a note of them.
void find_masks(const SequenceRequest& request, PreparedSequence& prepared,
                const Context& context) {
  prepared.groups = request.groups;
  if (request.finds_onset) {
    const auto last = static_cast<ptrdiff_t>(frame_before_onset(request, prepared, context));
    const auto begin = request.wanted.begin();
    prepared.groups = {group_of_masks(
        {begin + (request.chooses_masks ? 0 : last), begin + last + 1}, request.wanted)};
  }
  prepared.frames = frames_of(prepared.groups);
  const std::string masks = prepared.groups.size() == 1
                                ? " (frames " + frames_text(prepared.groups[0].mask_frames) + ")"
                                : "";
  prepared.notes.insert(prepared.notes.begin(), "mask: " + request.mask_source + masks);
}

/// For SequenceRequest::chooses_masks.
void choose_masks(const SequenceRequest& request, PreparedSequence& prepared,
                  const Context& context) {
  const FrameSource& source = request.source;
  const MaskGroup all = prepared.groups.at(0);
  if (all.mask_frames.size() == 1 || std::min(source.size.x, source.size.y) < kMinimumForChoice) {
    return;
  }
  const size_t pixels = source.pixels();
  std::vector<uint16_t> stored(all.mask_frames.size() * pixels);
  for (size_t i = 0; i < all.mask_frames.size(); ++i) {
    source.read(all.mask_frames[i], 1, std::span(stored).subspan(i * pixels, pixels));
  }
  const MaskCandidates candidates(mask_input(request, prepared), stored, context);
  stored.resize(pixels);
  std::map<std::vector<int>, MaskGroup> by_mask;
  for (const int frame : all.frames) {
    context.throw_if_stopped("stopped while masks were chosen");
    source.read(frame, 1, stored);
    std::vector<int> masks;
    for (const size_t i : candidates.best_of(stored, context)) {
      masks.push_back(all.mask_frames[i]);
    }
    by_mask[masks].frames.push_back(frame);
  }
  prepared.groups.clear();
  for (auto& [mask, group] : by_mask) {
    group.mask_frames = mask;
    prepared.groups.push_back(std::move(group));
  }
  std::sort(prepared.groups.begin(), prepared.groups.end(),
            [](const auto& a, const auto& b) { return a.frames.front() < b.frames.front(); });
}

/// Returns the bytes that the frames in work may take.
int64_t budget_of(const SequenceRequest& request) {
  if (request.memory_bytes > 0) return request.memory_bytes;
  return std::min(kUsualBytes, static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2));
}

/// Throws MemoryError if the frames of a mask, which are held together while their mean is made,
/// take more than is allowed.
void require_masks_fit(const SequenceRequest& request, const std::vector<MaskGroup>& groups) {
  size_t most = 0;
  for (const MaskGroup& group : groups) most = std::max(most, group.mask_frames.size());
  const auto bytes = static_cast<int64_t>(most * 2 * kMaskBytes * request.source.pixels());
  const int64_t budget = budget_of(request);
  if (most <= 1 || bytes <= budget) return;
  throw MemoryError("the " + std::to_string(most) + " frames of the mask of '" +
                    request.source.name + "' take " + bytes_text(bytes) +
                    " while their mean is made, " + bytes_text(budget) +
                    " are allowed; name fewer with --mask-frames, or give more --memory");
}

/// The device, and what is wanted of the frames, decide. Throws MemoryError if batches of one frame
/// take more than SequenceRequest::memory_bytes.
BatchPlan plan_batches(const SequenceRequest& request, const std::vector<MaskGroup>& groups,
                       const Context& context) {
  require_masks_fit(request, groups);
  const FrameBytes work =
      bytes_per_frame(request.config, request.source.size, made_of_frames(request));
  const bool is_measured = measures_frames(request.config, request.scores);
  const bool is_cuda = context.device.is_cuda();
  const int64_t stored = static_cast<int64_t>(2 * request.source.pixels());
  const int64_t uploaded = is_cuda ? 0 : stored, images = is_cuda ? 0 : work.images;
  // Bytes of one frame; what is on the device counts on the CPU alone.
  const int64_t reading = stored + uploaded;
  const int64_t computing = stored + work.figures + (is_cuda ? 0 : work.on_device);
  const int64_t resting = stored + work.figures + std::max(uploaded, images);
  const int64_t finishing = resting + work.images + (is_measured ? kScoreBytes * stored : 0);
  // A batch is read, one computed, one written, and one waits. Where that is too much, they follow
  // each other.
  const int64_t all = reading + computing + resting + finishing;
  const int64_t alone = std::max({reading, computing, finishing});
  const int64_t budget = budget_of(request);
  if (request.memory_bytes > 0 && request.batch_frames == 0 && alone > budget) {
    throw MemoryError("a frame of '" + request.source.name + "' takes " + bytes_text(alone) +
                      " while it is worked on, --memory allows " + bytes_text(budget));
  }
  const int64_t most =
      is_cuda ? kDeviceBatch : std::clamp(context.threads, kDeviceBatch, kMaximumBatch);
  const int64_t wanted = request.batch_frames > 0
                             ? request.batch_frames
                             : std::min(most, std::max<int64_t>(1, budget / all));
  BatchPlan plan;
  plan.frames = static_cast<int>(std::min(wanted, static_cast<int64_t>(frames_of(groups).size())));
  plan.overlaps = request.batch_frames > 0 || all <= budget;
  plan.bytes = plan.frames * (plan.overlaps ? all : alone);
  return plan;
}

/// Returns the table of samples; what is odd is warned of.
SampleTable table_of(const SequenceRequest& request, const Context& context) {
  const StoredValues& values = request.source.values;
  const DsaConfig& config = request.config;
  warn_of_small_blocks(config, context);
  if (values.holds == Domain::kAuto && config.stored == Domain::kAuto) {
    context.warn("'" + request.source.name +
                 "': it is not known whether its values are linear or logarithms of the X-rays; " +
                 (config.domain == Domain::kLog
                      ? "they are taken as linear"
                      : "differences are taken of the values as they are") +
                 "; say it with --stored");
  }
  return make_sample_table(values, config);
}

}  // namespace

std::vector<int> frames_of(const std::vector<MaskGroup>& groups) {
  std::vector<int> all;
  for (const MaskGroup& group : groups) {
    all.insert(all.end(), group.frames.begin(), group.frames.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string frames_text(const std::vector<int>& frames) {
  std::string text;
  for (size_t i = 0; i < frames.size(); ++i) {
    size_t last = i;
    while (last + 1 < frames.size() && frames[last + 1] == frames[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(frames[i] + 1);
    if (last > i) text += "-" + std::to_string(frames[last] + 1);
    i = last;
  }
  return text;
}

std::string frame_words(const std::vector<int>& frames) {
  return (frames.size() == 1 ? "frame " : "frames ") + frames_text(frames);
}

MaskGroup group_of_masks(const std::vector<int>& mask_frames, const std::vector<int>& wanted) {
  MaskGroup group{.mask_frames = mask_frames};
  const std::set<int> masks(mask_frames.begin(), mask_frames.end());
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(group.frames),
               [&](int frame) { return !masks.contains(frame); });
  if (group.frames.empty()) {
    throw InputError(
        "no contrast frame is left: the mask takes all frames; a sequence needs a mask frame and "
        "at least one more");
  }
  return group;
}

MaskInput mask_input(const SequenceRequest& request, const PreparedSequence& prepared) {
  MaskInput input;
  input.size = request.source.size;
  input.table = prepared.table;
  input.region = prepared.region;
  input.open = prepared.unshuttered;
  return input;
}

SequenceWants made_of_frames(const SequenceRequest& request) {
  SequenceWants wants = request.wants;
  if (measures_frames(request.config, request.scores)) wants.shifted = wants.uncorrected = true;
  return wants;
}

BatchPlan check_sequence(const SequenceRequest& request, const Context& context) {
  table_of(request, context);
  return plan_batches(request, request.groups, context);
}

namespace {

/// Throws UsageError for regions of another size than a frame's, and for frames that are not there.
void require_frames(const SequenceRequest& request) {
  require_region(request.region, request.source.pixels());
  require_region(request.shutter, request.source.pixels());
  const auto is_there = [&](int frame) { return frame >= 0 && frame < request.source.frames; };
  for (const MaskGroup& group : request.groups) {
    if (group.mask_frames.empty() || !std::ranges::all_of(group.mask_frames, is_there) ||
        !std::ranges::all_of(group.frames, is_there)) {
      throw UsageError("a mask, or what it is subtracted from, has frames beyond the " +
                       std::to_string(request.source.frames) + " of the sequence, or no frame");
    }
  }
}

}  // namespace

PreparedSequence prepare_sequence(const SequenceRequest& request, const Context& context) {
  require_frames(request);
  PreparedSequence prepared;
  prepared.table = table_of(request, context);
  prepared.notes = {
      std::string("differences: ") + (prepared.table.is_log ? "log" : "linear") +
      (request.source.values.values.empty() ? "" : ", by the Modality LUT of the file")};
  find_region(request, prepared, context);
  find_masks(request, prepared, context);
  prepared.plan = plan_batches(request, prepared.groups, context);
  if (request.chooses_masks) choose_masks(request, prepared, context);
  return prepared;
}

}  // namespace larch::dsa
