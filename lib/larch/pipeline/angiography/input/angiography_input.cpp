// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/input/angiography_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/io/bytes/message.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

namespace larch::pipeline {
namespace {

using dsa::MaskGroup;

/// More frames than any device makes: a longer range is a mistake of typing.
constexpr int kMaximumFrames = 1'000'000;

int parse_number(const std::string& text, const std::string& whole, const std::string& flag) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw UsageError(flag + " '" + whole + "': give frames from 1 and ranges, such as 1-3,7");
  }
  if (number < 1 || number > kMaximumFrames) {
    throw UsageError(flag + " '" + whole + "': frames are counted from 1");
  }
  return number;
}

[[noreturn]] void contradict(const Angiogram& about, const std::string& what) {
  throw InputError("'" + about.path + "': its Mask Subtraction Sequence contradicts the file: " +
                   what + "; name the mask with --mask-frames");
}

/// Returns the contrast frames of an item with their mask frames.
std::map<int, std::vector<int>> masks_of_item(const Angiogram& about, const MaskItem& item) {
  std::map<int, std::vector<int>> masks;
  if (item.operation == MaskOperation::kNone) return masks;
  const auto last = static_cast<int>(about.frames) - 1;
  const bool is_open = item.ranges.empty();
  const auto ranges = is_open ? std::vector<FrameSpan>{{0, last}} : item.ranges;
  for (const FrameSpan& span : ranges) {
    for (int frame = span.first; frame <= span.last; ++frame) {
      if (item.operation == MaskOperation::kAverage) {
        if (frame + item.contrast_averaging - 1 <= last) {
          masks[frame] = item.mask_frames;
        } else if (!is_open) {
          contradict(about, "Contrast Frame Averaging goes beyond the last frame");
        }
        continue;
      }
      // Backwards from the first frame of the first range on, whatever the ranges leave out.
      const bool is_reverse = item.operation == MaskOperation::kReverseTid;
      const int back = is_reverse ? 2 * (frame - ranges.front().first) : 0;
      const int mask = frame - item.tid_offset - back;
      if (mask >= 0 && mask <= last) {
        masks[frame] = {mask};
      } else if (!is_open) {
        contradict(about, "the mask of frame " + std::to_string(frame + 1) + " would be frame " +
                              std::to_string(mask + 1) + " of " + std::to_string(about.frames));
      }
    }
  }
  return masks;
}

}  // namespace

std::vector<int> parse_frames(const std::string& text, int64_t count, const std::string& flag) {
  std::set<int> frames;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const size_t dash = part.find('-');
    const int first = parse_number(part.substr(0, dash), text, flag);
    const int last =
        dash == std::string::npos ? first : parse_number(part.substr(dash + 1), text, flag);
    if (last < first) throw UsageError(flag + " '" + text + "': a range goes from low to high");
    if (count > 0 && last > count) {
      throw UsageError(flag + " '" + text + "': there is no frame " + std::to_string(last) +
                       "; the sequence has " + std::to_string(count) + ", counted from 1");
    }
    for (int frame = first; frame <= last; ++frame) frames.insert(frame - 1);
    at = end + 1;
  }
  return {frames.begin(), frames.end()};
}

MaskPlan plan_by_file(const Angiogram& about, const std::vector<int>& wanted) {
  MaskPlan plan{.source = "the Mask Subtraction Sequence of the file"};
  if (!about.mask_problem.empty()) throw InputError(about.mask_problem);
  const std::set<int> asked(wanted.begin(), wanted.end());
  std::map<int, MaskGroup> by_frame;  // of each contrast frame, without its frames
  std::set<int> named;
  bool overlap = false;
  for (const MaskItem& item : about.masks) {
    for (const auto& [frame, mask] : masks_of_item(about, item)) {
      const bool is_mean = item.operation == MaskOperation::kAverage;
      MaskGroup group{.mask_frames = mask,
                      .averaging = is_mean ? item.contrast_averaging : 1,
                      .shift_px = item.shift_px};
      std::ranges::sort(group.mask_frames);
      named.insert(frame);
      if (asked.contains(frame)) overlap |= !by_frame.emplace(frame, group).second;
    }
  }
  if (by_frame.empty() && !named.empty()) {
    throw UsageError("'" + about.path + "': its Mask Subtraction Sequence is for frames " +
                     dsa::frames_text({named.begin(), named.end()}) +
                     ", none of which --frames names; name the mask with --mask-frames");
  }
  for (const auto& [frame, group] : by_frame) {
    const auto same = std::ranges::find_if(plan.groups, [&group = group](const auto& other) {
      return other.mask_frames == group.mask_frames && other.averaging == group.averaging &&
             other.shift_px == group.shift_px;
    });
    MaskGroup& to = same != plan.groups.end() ? *same : plan.groups.emplace_back(group);
    to.frames.push_back(frame);
  }
  if (overlap) {
    plan.warnings.push_back(
        "'" + about.path +
        "': several items of its Mask Subtraction Sequence name the same frames; the first counts");
  }
  return plan;
}

namespace {

/// Tells whether the values of the file are to be read through its Modality LUT or rescaling. From
/// logarithms that leads back to the intensity, and differences are of the logarithms.
bool takes_modality(const Angiogram& about, const dsa::DsaConfig& config) {
  const bool is_log =
      about.intensity == PixelIntensity::kLog ||
      (about.intensity != PixelIntensity::kLinear && config.stored == dsa::Domain::kLog);
  return !about.modality.empty() && !is_log;
}

/// Returns what the values of a file mean, which begin at 0 whatever the sign of the file's;
/// `config` is told in the same unit what is dark.
dsa::StoredValues values_of(const Angiogram& about, dsa::DsaConfig& config) {
  dsa::StoredValues stored;
  stored.bits = about.bits;
  stored.is_inverted = contrast_raises(about);
  if (about.intensity == PixelIntensity::kLinear) stored.holds = dsa::Domain::kLinear;
  if (about.intensity == PixelIntensity::kLog) stored.holds = dsa::Domain::kLog;
  if (takes_modality(about, config)) {
    // In steps of stored values differences are as fine as these, whatever the unit is.
    const double step = std::abs(rescaling_of(about).value_or(PixelRescaling{}).slope);
    config.dark /= step;
    for (const float value : about.modality) stored.values.push_back(value / step);
  } else {
    config.dark -= about.least_stored;
  }
  return stored;
}

/// Returns the frames to subtract, and those that the mask is looked for in.
std::vector<int> wanted_frames(const AngiographyOptions& o, const Angiogram& about) {
  if (!o.frames.empty()) return parse_frames(o.frames, about.frames, "--frames");
  std::vector<int> all(static_cast<size_t>(about.frames));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

MaskPlan plan_masks(const AngiographyOptions& o, const Angiogram& about,
                    const std::vector<int>& wanted, const Context& context) {
  const auto by_frames = [&](const std::vector<int>& masks, const char* source) {
    return MaskPlan{.groups = {dsa::group_of_masks(masks, wanted)}, .source = source};
  };
  if (!o.mask_frames.empty()) {
    return by_frames(parse_frames(o.mask_frames, about.frames, "--mask-frames"),
                     o.mask == MaskChoice::kBest ? "--mask best" : "--mask-frames");
  }
  if (o.mask == MaskChoice::kAuto || o.mask == MaskChoice::kBest) {  // until the onset is found
    return by_frames({wanted.front()}, o.mask == MaskChoice::kBest ? "--mask best" : "--mask auto");
  }
  if (o.mask == MaskChoice::kFile) {
    MaskPlan plan = plan_by_file(about, wanted);
    const size_t left_out = wanted.size() - dsa::frames_of(plan.groups).size();
    if (!plan.groups.empty() && !o.frames.empty() && left_out > 0) {
      plan.warnings.push_back("'" + about.path + "': " + std::to_string(left_out) + " of the " +
                              std::to_string(wanted.size()) +
                              " frames that --frames names are in no item of its Mask Subtraction "
                              "Sequence and not in the output");
    }
    if (!plan.groups.empty()) return plan;
    context.info("'" + about.path + "' names no mask; its first frame is taken (--mask-frames)");
  }
  return by_frames({0}, "the first frame");
}

std::string words_of(const dsa::MaskGroup& group) {
  std::string text = "|" + std::to_string(group.averaging) + " " +
                     std::to_string(group.shift_px.x) + " " + std::to_string(group.shift_px.y);
  for (const int frame : group.mask_frames) text += " " + std::to_string(frame);
  text += ":";
  for (const int frame : group.frames) text += " " + std::to_string(frame);
  return text;
}

/// Returns the pixels of a frame in the region of interest. Throws UsageError for a rectangle or a
/// polygon that is not within the frame, and InputError for a mask that cannot be read, has another
/// size or leaves no pixel.
std::vector<uint8_t> region_of_interest(const cases::CaseJob& c, const AngiographyOptions& o,
                                        const Grid& grid) {
  std::vector<uint8_t> region = dsa::whole_region(grid.size);
  if (!o.roi_rectangle.empty()) {
    const auto& r = o.roi_rectangle;
    dsa::keep_rectangle(region, grid.size, {r[0], r[1], r[2], r[3]});
  }
  if (!o.roi_polygon.empty()) {
    std::vector<dsa::Corner> corners;
    for (size_t i = 0; i + 1 < o.roi_polygon.size(); i += 2) {
      corners.push_back({o.roi_polygon[i], o.roi_polygon[i + 1]});
    }
    dsa::keep_polygon(region, grid.size, corners);
  }
  if (o.roi) {
    const LabelVolume roi = read_labels(o.roi, label_options(c.read));
    if (roi.size() != grid.size) {
      throw InputError("'" + o.roi.path + "' is not of the frame's size: " +
                       cases::size_cell(roi.grid()) + " pixels against " + cases::size_cell(grid));
    }
    dsa::keep_common(region, region_of_labels(roi));
  }
  dsa::require_inside(region, c.row.image);
  return region;
}

/// Returns what the collimator leaves by the file; empty: the file does not say it.
std::vector<uint8_t> shutter_of(const Angiogram& about) {
  std::vector<uint8_t> open;
  for (int64_t p = 0; about.shutter.is_given() && p < about.grid.voxels(); ++p) {
    const Vec3i at = about.grid.voxel(p);
    open.push_back(about.shutter.shows(at.x, at.y) ? 1 : 0);
  }
  return open;
}

}  // namespace

OpenAngiogram open_angiogram(const cases::CaseJob& c, const AngiographyOptions& o,
                             const Context& context) {
  OpenAngiogram open;
  open.reader = std::make_shared<SequenceReader>(c.row.image, c.read);
  if (o.contrast != ContrastChoice::kFile) {
    open.reader->tell_contrast(o.contrast == ContrastChoice::kRaises);
  }
  const Angiogram& about = open.about();
  for (const std::string& warning : about.warnings) context.warn(warning);
  // Modalities whose pictures X-rays make; a file that does not say its own is believed.
  static const std::set<std::string> kOfXrays{"", "XA", "RF", "DX", "CR", "DS", "RG", "OT"};
  if (about.is_dicom && !kOfXrays.contains(about.modality_name)) {
    context.warn("'" + about.path + "': its modality is " + io::shown(about.modality_name) +
                 ", not that of X-ray pictures; it is subtracted as if it were an angiogram");
  }
  if (about.frames < 2) {
    throw InputError("'" + about.path +
                     "' has one frame; a mask and a contrast frame are needed. " + kJoinFrames +
                     ". Two volumes: give the other one with --mask-volume");
  }
  dsa::SequenceRequest& request = open.request;
  request.config = o.config;
  request.source = {
      .name = about.path,
      .size = about.grid.size,
      .frames = about.frames,
      .values = values_of(about, request.config),
      .times_ms = about.times_ms,
      .read = [reader = open.reader](int64_t first, int64_t count, std::span<uint16_t> to) {
        reader->read(first, count, to);
      }};
  request.wanted = wanted_frames(o, about);
  MaskPlan plan = plan_masks(o, about, request.wanted, context);
  for (const std::string& warning : plan.warnings) context.warn(warning);
  open.frames = static_cast<int64_t>(dsa::frames_of(plan.groups).size());
  request.groups = std::move(plan.groups);
  request.mask_source = plan.source;
  request.chooses_masks = o.mask == MaskChoice::kBest;
  request.finds_onset =
      o.mask_frames.empty() && (o.mask == MaskChoice::kAuto || o.mask == MaskChoice::kBest);
  request.region = region_of_interest(c, o, about.grid);
  if (o.shutter != ShutterChoice::kNone) request.shutter = shutter_of(about);
  request.finds_shutter = o.shutter == ShutterChoice::kAuto;
  request.scores = o.scores;
  request.wants = outputs_wants(c, o);
  request.batch_frames = o.batch_frames;
  request.memory_bytes = o.images.memory.count;
  check_sequence_files(c, about, open.frames);
  return open;
}

std::vector<uint8_t> region_of_labels(const LabelVolume& labels) {
  std::vector<uint8_t> inside(static_cast<size_t>(labels.voxels()));
  std::transform(labels.begin(), labels.end(), inside.begin(),
                 [](int32_t label) { return static_cast<uint8_t>(label != 0); });
  return inside;
}

std::string angiography_identity(const dsa::DsaConfig& config, const Angiogram& about,
                                 const dsa::PreparedSequence& prepared) {
  const std::string& path = about.path;
  std::string text = version() + " " + sha256_of_file(path);
  for (const std::string& file : detached_files(path)) text += sha256_of_file(file);
  text += config::to_json(config).dump();
  if (!about.is_dicom && contrast_raises(about)) text += "|raises";
  for (const dsa::MaskGroup& group : prepared.groups) text += words_of(group);
  Sha256 hash;
  hash.update(text.data(), text.size());
  // Each with its size: none, which is everywhere, is not the same as one beside the other.
  for (const auto* region : {&prepared.region, &prepared.unshuttered}) {
    const std::string size = "|" + std::to_string(region->size()) + "|";
    hash.update(size.data(), size.size());
    hash.update(region->data(), region->size());
  }
  return hex(hash.digest());
}

}  // namespace larch::pipeline
