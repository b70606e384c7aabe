// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/input/angiography_input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string_view>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/io/image/image.h"
#include "larch/io/image/message.h"

namespace larch::pipeline {
namespace {

/// Frames that the collimator is looked for in, evenly spread.
constexpr int64_t kShutterFrames = 16;
/// Pictures that are smaller have no room for a collimator.
constexpr int32_t kLeastForShutter = 64;
/// Grey values of 12 bits: what varies less within 15 x 15 pixels lies behind the collimator.
constexpr double kLeastDeviation = 2;
constexpr double kLeastDeviationOfAll = 0.5;  ///< grey values, whatever the bits
/// Grey values of 12 bits: what is brighter does not lie behind the collimator.
constexpr double kDark = 256;

dsa::StoredValues stored_values(const Angiogram& about) {
  dsa::StoredValues stored;
  stored.bits = about.bits;
  stored.is_inverted = contrast_raises(about);
  if (about.intensity == PixelIntensity::kLinear) stored.holds = dsa::Domain::kLinear;
  if (about.intensity == PixelIntensity::kLog) stored.holds = dsa::Domain::kLog;
  return stored;
}

/// Modalities whose pictures X-rays make; a file that does not say its own is believed.
bool is_of_xrays(const std::string& modality) {
  constexpr std::array<std::string_view, 8> kOfXrays{"", "XA", "RF", "DX", "CR", "DS", "RG", "OT"};
  return std::find(kOfXrays.begin(), kOfXrays.end(), modality) != kOfXrays.end();
}

/// Whether what the file holds is to be read through its Modality LUT or rescaling. From logarithms
/// that leads back to the intensity, and differences are of the logarithms.
bool takes_modality(const Angiogram& about, const dsa::DsaConfig& config) {
  const bool is_log =
      about.intensity == PixelIntensity::kLog ||
      (about.intensity != PixelIntensity::kLinear && config.stored == dsa::Domain::kLog);
  return !about.modality.empty() && !is_log;
}

/// The reader's pixels begin at 0 whatever the sign of the file's.
dsa::SampleTable table_of(const Angiogram& about, dsa::DsaConfig config, const Context& context) {
  dsa::StoredValues stored = stored_values(about);
  if (takes_modality(about, config)) {
    // In steps of stored values differences are as fine as these, whatever the unit is.
    const auto rescaling = rescaling_of(about);
    const double step = rescaling ? std::abs(rescaling->slope) : 1;
    config.dark /= step;
    for (const float value : about.modality) stored.values.push_back(value / step);
  } else {
    config.dark -= about.least_stored;
  }
  if (stored.holds == dsa::Domain::kAuto && config.stored == dsa::Domain::kAuto) {
    context.warn("'" + about.path +
                 "': it is not known whether its values are linear or logarithms of the X-rays; " +
                 (config.domain == dsa::Domain::kLog
                      ? "they are taken as linear"
                      : "differences are taken of the values as they are") +
                 "; say it with --stored");
  }
  return dsa::make_sample_table(stored, config);
}

/// Histograms of blocks below this side are noisy, and their peaks often wrong.
constexpr int kSmallBlock = 32;
void warn_of_small_blocks(const dsa::DsaConfig& config, const Context& context) {
  if (config.method != dsa::Method::kBlock && config.method != dsa::Method::kFlex) return;
  const auto passes = dsa::passes_of(config, /*is_volume=*/false);
  const int least =
      std::min_element(passes.begin(), passes.end(), [](const auto& a, const auto& b) {
        return a.block < b.block;
      })->block;
  if (least >= kSmallBlock) return;
  context.warn("blocks of " + std::to_string(least) + " pixels have few differences to compare; " +
               "below " + std::to_string(kSmallBlock) + " pixels many vectors are wrong");
}

std::vector<int> wanted_frames(const AngiographyInput& input, int64_t count) {
  if (!input.frames.empty()) return parse_frames(input.frames, count, "--frames");
  std::vector<int> frames(static_cast<size_t>(count));
  std::iota(frames.begin(), frames.end(), 0);
  return frames;
}

/// The frame before contrast agent arrives, counted from 0: the 1st percentile of the difference of
/// each frame to the one before falls most from this frame to the next. `raises`: contrast agent
/// raises the stored values. Of the frames `wanted`, at least one.
int frame_before_contrast(SequenceReader& reader, const std::vector<int>& wanted, bool raises,
                          const Context& context) {
  constexpr int64_t kMost = 65535;
  std::vector<uint16_t> before(static_cast<size_t>(reader.frame_pixels())), frame(before.size());
  std::vector<int64_t> histogram(2 * static_cast<size_t>(kMost) + 1);
  int best = wanted.front();
  int64_t last = 0, largest = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (context.stop_requested()) {
      throw Stopped("stopped while the mask was looked for",
                    static_cast<ExitCode>(context.stop->load()));
    }
    reader.read(wanted[i], 1, frame);
    if (i > 0) {
      std::fill(histogram.begin(), histogram.end(), 0);
      for (size_t p = 0; p < frame.size(); ++p) {
        const int64_t change = int64_t{frame[p]} - before[p];
        ++histogram[static_cast<size_t>((raises ? -change : change) + kMost)];
      }
      const auto share = static_cast<int64_t>(frame.size()) / 100;
      int64_t below = 0;
      int64_t percentile = -kMost;
      while ((below += histogram[static_cast<size_t>(percentile + kMost)]) <= share) ++percentile;
      const int64_t jump = last - percentile;
      // The change to the second frame has none before it to be compared with.
      if (i > 1 && jump > largest) {
        largest = jump;
        best = wanted[i - 1];
      }
      last = percentile;
    }
    std::swap(before, frame);
  }
  context.info("mask: frame " + std::to_string(best + 1) + ", before contrast agent arrives");
  return best;
}

MaskPlan plan_masks(const AngiographyInput& input, SequenceReader& reader, const Context& context) {
  const Angiogram& about = reader.about();
  const std::vector<int> wanted = wanted_frames(input, about.frames);
  if (!input.mask_frames.empty()) {
    return plan_by_frames(parse_frames(input.mask_frames, about.frames, "--mask-frames"), wanted,
                          "--mask-frames");
  }
  if (input.mask == MaskChoice::kAuto) {
    const int mask = frame_before_contrast(reader, wanted, contrast_raises(about), context);
    return plan_by_frames({mask}, wanted, "--mask auto");
  }
  if (input.mask == MaskChoice::kFile) {
    MaskPlan plan = plan_by_file(about, wanted);
    const size_t left_out = wanted.size() - plan.frames().size();
    if (!plan.groups.empty() && !input.frames.empty() && left_out > 0) {
      plan.warnings.push_back("'" + about.path + "': " + std::to_string(left_out) + " of the " +
                              std::to_string(wanted.size()) +
                              " frames that --frames names are in no item of its Mask Subtraction "
                              "Sequence and not in the output");
    }
    if (!plan.groups.empty()) return plan;
    context.info("'" + about.path + "' names no mask; its first frame is taken (--mask-frames)");
  }
  return plan_by_frames({0}, wanted, "the first frame");
}

/// The sum of some of the frames, evenly spread, and how many these are.
std::pair<std::vector<uint32_t>, int32_t> sum_of_frames(SequenceReader& reader) {
  const int64_t count = reader.about().frames, taken = std::min(count, kShutterFrames);
  std::vector<uint16_t> frame(static_cast<size_t>(reader.frame_pixels()));
  std::vector<uint32_t> sum(frame.size());
  for (int64_t i = 0; i < taken; ++i) {
    reader.read(i * count / taken, 1, frame);
    for (size_t p = 0; p < sum.size(); ++p) sum[p] += frame[p];
  }
  return {sum, static_cast<int32_t>(taken)};
}

/// What the file says that its shutter shows.
std::vector<uint8_t> shown_by_file(const Angiogram& about) {
  const Vec3i size = about.grid.size;
  std::vector<uint8_t> open = dsa::whole_region(size);
  size_t at = 0;
  for (int32_t y = 0; y < size.y; ++y) {
    for (int32_t x = 0; x < size.x; ++x, ++at) {
      if (!about.shutter.shows(x, y)) open[at] = 0;
    }
  }
  return open;
}

dsa::ShutterRule shutter_rule(const Angiogram& about, int32_t frames) {
  const double grey = std::ldexp(1, about.bits - 12);  // of 12 bits
  dsa::ShutterRule rule;
  rule.frames = frames;
  rule.flat = std::max(kLeastDeviationOfAll, kLeastDeviation * grey);
  rule.flat_where_dark = std::max(kLeastDeviation, kLeastDeviation * grey);
  rule.dark = kDark * grey;
  if (contrast_raises(about)) rule.top = std::ldexp(1, about.bits) - 1;
  return rule;
}

/// Fills OpenAngiogram::unshuttered.
void find_shutter(const RegionRequest& request, OpenAngiogram& open, const Context& context) {
  const Angiogram& about = open.reader.about();
  const Vec3i size = about.grid.size;
  const bool is_small = std::min(size.x, size.y) < kLeastForShutter;
  const bool is_given = about.shutter.is_given();
  if (request.shutter == ShutterChoice::kNone) return;
  if (!is_given && (request.shutter == ShutterChoice::kFile || is_small)) return;
  const auto [sum, frames] = sum_of_frames(open.reader);
  std::vector<uint8_t> region =
      is_given ? shown_by_file(about) : dsa::find_shutter(sum, size, shutter_rule(about, frames));
  const int32_t blurred = dsa::blurred_edge(sum, size, region);
  dsa::narrow_open(region, size, blurred);
  const int64_t all = about.grid.voxels(), covered = all - dsa::count_inside(region);
  if (covered == 0) return;
  char note[120];
  std::snprintf(note, sizeof note,
                "shutter: %s, covers %.1f %% of the frame with %d px of blurred edge",
                is_given ? "that of the file" : "found",
                100.0 * static_cast<double>(covered) / static_cast<double>(all), blurred);
  open.notes.emplace_back(note);
  context.info(note);
  open.unshuttered = std::move(region);
}

void keep_roi_file(const AngiographyInput& input, const Vec3i& size, std::vector<uint8_t>& region) {
  if (input.region.roi.empty()) return;
  const LabelVolume roi = read_labels(input.region.roi, label_options(input.read));
  if (roi.grid().size != size) {
    const Vec3i other = roi.grid().size;
    throw InputError(
        "'" + input.region.roi + "' is not of the frame's size: " + std::to_string(other.x) + "x" +
        std::to_string(other.y) + "x" + std::to_string(other.z) + " pixels against " +
        std::to_string(size.x) + "x" + std::to_string(size.y) + "x" + std::to_string(size.z));
  }
  std::vector<uint8_t> inside(region.size());
  std::transform(roi.begin(), roi.end(), inside.begin(),
                 [](int32_t label) { return static_cast<uint8_t>(label != 0); });
  dsa::keep_common(region, inside);
}

std::string words_of(const MaskGroup& group) {
  std::string text = "|" + std::to_string(group.averaging) + " " +
                     std::to_string(group.shift_px.x) + " " + std::to_string(group.shift_px.y);
  for (const int frame : group.mask_frames) text += " " + std::to_string(frame);
  text += ":";
  for (const int frame : group.frames) text += " " + std::to_string(frame);
  return text;
}

}  // namespace

void check_angiography_input(const AngiographyInput& input) {
  if (!input.frames.empty()) parse_frames(input.frames, 0, "--frames");
  if (!input.mask_frames.empty()) {
    parse_frames(input.mask_frames, 0, "--mask-frames");
    if (input.mask != MaskChoice::kFile) throw UsageError("give either --mask-frames or --mask");
  }
  const size_t numbers = input.region.polygon.size();
  if (numbers % 2 != 0 || (numbers > 0 && numbers < 6)) {
    throw UsageError("--roi-polygon takes x,y of three corners or more: x,y,x,y,x,y");
  }
}

OpenAngiogram open_angiogram(const AngiographyInput& input, const dsa::DsaConfig& config,
                             const Context& context) {
  SequenceReader reader(input.path, input.read);
  const Angiogram& about = reader.about();
  for (const std::string& warning : about.warnings) context.warn(warning);
  if (about.is_dicom && !is_of_xrays(about.modality_name)) {
    context.warn("'" + input.path + "': its modality is " + io::shown(about.modality_name) +
                 ", not that of X-ray pictures; it is subtracted as if it were an angiogram");
  }
  if (about.frames < 2) {
    throw InputError("'" + input.path +
                     "' has one frame; a mask and a contrast frame are needed. Two volumes: give "
                     "the other one with --mask-volume");
  }
  warn_of_small_blocks(config, context);
  dsa::SampleTable table = table_of(about, config, context);
  MaskPlan plan = plan_masks(input, reader, context);
  for (const std::string& warning : plan.warnings) context.warn(warning);
  OpenAngiogram open{std::move(reader), std::move(plan), std::move(table), {}, {}, {}};
  std::string masks;
  for (const MaskGroup& group : open.plan.groups) {
    if (open.plan.groups.size() == 1) masks = " (frames " + frames_text(group.mask_frames) + ")";
  }
  open.notes.push_back("mask: " + open.plan.source + masks);
  const bool modality = takes_modality(open.reader.about(), config);
  open.notes.push_back(std::string("differences: ") + (open.table.is_log ? "log" : "linear") +
                       (modality ? ", by the Modality LUT of the file" : ""));
  return open;
}

void find_region(const AngiographyInput& input, OpenAngiogram& open, const Context& context) {
  const Vec3i size = open.reader.about().grid.size;
  std::vector<uint8_t> region = dsa::whole_region(size);
  const RegionRequest& request = input.region;
  if (!request.rectangle.empty()) {
    const auto& r = request.rectangle;
    dsa::keep_rectangle(region, size, {r[0], r[1], r[2], r[3]});
  }
  if (!request.polygon.empty()) {
    std::vector<dsa::Corner> corners;
    for (size_t i = 0; i + 1 < request.polygon.size(); i += 2) {
      corners.push_back({request.polygon[i], request.polygon[i + 1]});
    }
    dsa::keep_polygon(region, size, corners);
  }
  keep_roi_file(input, size, region);
  find_shutter(request, open, context);
  if (!open.unshuttered.empty()) dsa::keep_common(region, open.unshuttered);
  const int64_t inside = dsa::count_inside(region);
  if (inside == 0) {
    throw InputError("'" + input.path +
                     "': no pixel is left inside of region and shutter; give another region, or "
                     "--shutter none");
  }
  if (inside < static_cast<int64_t>(region.size())) open.region = std::move(region);
}

std::string angiography_identity(const std::string& path, const dsa::DsaConfig& config,
                                 const OpenAngiogram& open) {
  std::string text = version() + " " + sha256_of_file(path);
  for (const std::string& file : detached_files(path)) text += sha256_of_file(file);
  text += config::to_json(config).dump();
  for (const MaskGroup& group : open.plan.groups) text += words_of(group);
  Sha256 hash;
  hash.update(text.data(), text.size());
  // Each with its size: none, which is everywhere, is not the same as one beside the other.
  for (const auto* region : {&open.region, &open.unshuttered}) {
    const std::string size = "|" + std::to_string(region->size()) + "|";
    hash.update(size.data(), size.size());
    hash.update(region->data(), region->size());
  }
  return hex(hash.digest());
}

}  // namespace larch::pipeline
