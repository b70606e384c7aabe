// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/input/angiography_input.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/mask_frames.h"
#include "larch/dsa/onset.h"
#include "larch/dsa/region.h"
#include "larch/dsa/sequence.h"
#include "larch/io/bytes/message.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

/// Smaller pictures do not move (dsa::rigid_shifts).
constexpr int32_t kLeastForChoice = 16;
/// Frames that are subtracted at a time while the onset of contrast agent is looked for.
constexpr size_t kOnsetBatch = 8;
/// Contrast agent fills few pixels before it is clear: the mask is so many frames and so many
/// milliseconds before.
constexpr size_t kFramesBefore = 2;
constexpr double kBeforeMs = 200;

/// Frames that the collimator is looked for in, evenly spread.
constexpr int64_t kShutterFrames = 16;
/// Pictures that are smaller have no room for a collimator.
constexpr int32_t kLeastForShutter = 64;
/// Grey values of 12 bits: what varies less within 15 x 15 pixels lies behind the collimator.
constexpr double kLeastDeviation = 2;
constexpr double kLeastDeviationOfAll = 0.5;  ///< grey values, whatever the bits
/// Grey values of 12 bits: what is brighter does not lie behind the collimator.
constexpr double kDark = 256;

/// Tells whether the values of the file are to be read through its Modality LUT or rescaling. From
/// logarithms that leads back to the intensity, and differences are of the logarithms.
bool takes_modality(const Angiogram& about, const dsa::DsaConfig& config) {
  const bool is_log =
      about.intensity == PixelIntensity::kLog ||
      (about.intensity != PixelIntensity::kLinear && config.stored == dsa::Domain::kLog);
  return !about.modality.empty() && !is_log;
}

/// The reader's pixels begin at 0 whatever the sign of the file's.
dsa::SampleTable table_of(const Angiogram& about, dsa::DsaConfig config, const Context& context) {
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

/// The frames to subtract, and those that the mask is looked for in.
std::vector<int> wanted_frames(const AngiographyOptions& o, const Angiogram& about) {
  if (!o.frames.empty()) return parse_frames(o.frames, about.frames, "--frames");
  std::vector<int> all(static_cast<size_t>(about.frames));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Tells whether the onset of contrast agent is looked for.
bool is_auto(const AngiographyOptions& o) {
  return o.mask_frames.empty() && (o.mask == MaskChoice::kAuto || o.mask == MaskChoice::kBest);
}

std::string auto_source(const AngiographyOptions& o) {
  return o.mask == MaskChoice::kBest ? "--mask best" : "--mask auto";
}

MaskPlan plan_masks(const AngiographyOptions& o, const Angiogram& about, const Context& context) {
  const std::vector<int> wanted = wanted_frames(o, about);
  if (!o.mask_frames.empty()) {
    return plan_by_frames(parse_frames(o.mask_frames, about.frames, "--mask-frames"), wanted,
                          o.mask == MaskChoice::kBest ? "--mask best" : "--mask-frames");
  }
  if (is_auto(o)) {
    return plan_by_frames({wanted.front()}, wanted, auto_source(o));  // until find_mask()
  }
  if (o.mask == MaskChoice::kFile) {
    MaskPlan plan = plan_by_file(about, wanted);
    const size_t left_out = wanted.size() - plan.frames().size();
    if (!plan.groups.empty() && !o.frames.empty() && left_out > 0) {
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

dsa::ShutterRule shutter_rule(const Angiogram& about, int64_t frames) {
  const double grey = std::ldexp(1, about.bits - 12);  // of 12 bits
  dsa::ShutterRule rule;
  rule.frames = static_cast<int32_t>(frames);
  rule.flat = std::max(kLeastDeviationOfAll, kLeastDeviation * grey);
  rule.flat_where_dark = std::max(kLeastDeviation, kLeastDeviation * grey);
  rule.dark = kDark * grey;
  if (contrast_raises(about)) rule.top = std::ldexp(1, about.bits) - 1;
  return rule;
}

/// Fills OpenAngiogram::unshuttered.
void find_shutter(ShutterChoice choice, OpenAngiogram& open, const Context& context) {
  const Angiogram& about = open.reader.about();
  const Vec3i size = about.grid.size;
  const bool is_small = std::min(size.x, size.y) < kLeastForShutter;
  const bool is_given = about.shutter.is_given();
  if (choice == ShutterChoice::kNone) return;
  if (!is_given && (choice == ShutterChoice::kFile || is_small)) return;
  const int64_t taken = std::min(about.frames, kShutterFrames);
  std::vector<uint16_t> frame(static_cast<size_t>(open.reader.frame_pixels()));
  std::vector<uint32_t> sum(frame.size());
  for (int64_t i = 0; i < taken; ++i) {
    open.reader.read(i * about.frames / taken, 1, frame);
    for (size_t p = 0; p < sum.size(); ++p) sum[p] += frame[p];
  }
  std::vector<uint8_t> region(sum.size());
  for (int64_t p = 0; is_given && p < about.grid.voxels(); ++p) {
    const Vec3i at = about.grid.voxel(p);
    region[static_cast<size_t>(p)] = about.shutter.shows(at.x, at.y) ? 1 : 0;
  }
  if (!is_given) region = dsa::find_shutter(sum, size, shutter_rule(about, taken));
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

/// Makes the input of a mask but for its frames.
dsa::MaskInput mask_input(const OpenAngiogram& open) {
  dsa::MaskInput input;
  input.size = open.reader.about().grid.size;
  input.table = open.table;
  input.region = open.region;
  input.open = open.unshuttered;
  return input;
}

/// The first of the frames `wanted` as the mask of the others.
dsa::SequenceMask first_as_mask(OpenAngiogram& open, std::vector<uint16_t>& stored,
                                const Context& context) {
  dsa::MaskInput input = mask_input(open);
  if (!open.unshuttered.empty()) dsa::fill_covered(stored, input.size, open.unshuttered);
  input.stored = {stored};
  return dsa::make_mask(input, {}, context);
}

/// The last of the frames `wanted`, by its place among them, that is surely free of contrast agent:
/// all are subtracted from the first of them, corrected for motion by blocks whatever
/// the method of the run is, until contrast agent has darkened them for good.
size_t frame_before_onset(const std::vector<int>& wanted, OpenAngiogram& open,
                          const Context& context) {
  const Angiogram& about = open.reader.about();
  const auto pixels = static_cast<size_t>(open.reader.frame_pixels());
  std::vector<uint16_t> stored(pixels);
  open.reader.read(wanted.front(), 1, stored);
  const dsa::SequenceMask mask = first_as_mask(open, stored, context);
  std::vector<dsa::Extremes> extremes;
  dsa::DsaConfig config;  // large blocks suffice
  config.passes = "64/64";
  config.allows_spline = false;
  std::optional<size_t> onset;
  for (size_t first = 1; first < wanted.size() && !onset; first += kOnsetBatch) {
    context.throw_if_stopped("stopped while the mask was looked for");
    const size_t count = std::min(kOnsetBatch, wanted.size() - first);
    stored.resize(count * pixels);
    for (size_t i = 0; i < count; ++i) {
      open.reader.read(wanted[first + i], 1, std::span(stored).subspan(i * pixels, pixels));
    }
    dsa::SequenceWants wants;
    wants.shift = false;
    const dsa::SubtractedFrames batch = dsa::subtract_frames(mask, stored, config, wants, context);
    const std::span<const int16_t> difference(batch.difference);
    const std::span<const uint8_t> validity(batch.validity);
    std::vector<dsa::Extremes> found(count);
    parallel_for(context.threads, static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        found[i] = dsa::extremes_of(difference.subspan(i * pixels, pixels),
                                    validity.subspan(i * pixels, pixels), about.grid.size);
      }
    });
    extremes.insert(extremes.end(), found.begin(), found.end());
    onset = dsa::find_onset(extremes, first + count == wanted.size());
  }
  if (!onset) {
    throw InputError("'" + about.path +
                     "': there is no frame from which on contrast agent clearly darkens " +
                     frame_words(wanted) + " for good; name frames without it with --mask-frames");
  }
  const size_t clear = *onset + 1;
  size_t before = std::min(kFramesBefore, clear);
  const auto time = [&](size_t i) { return about.times_ms[static_cast<size_t>(wanted[i])]; };
  while (!about.times_ms.empty() && before < clear &&
         time(clear) - time(clear - before) < kBeforeMs) {
    ++before;
  }
  return clear - before;
}

std::string words_of(const MaskGroup& group) {
  std::string text = "|" + std::to_string(group.averaging) + " " +
                     std::to_string(group.shift_px.x) + " " + std::to_string(group.shift_px.y);
  for (const int frame : group.mask_frames) text += " " + std::to_string(frame);
  text += ":";
  for (const int frame : group.frames) text += " " + std::to_string(frame);
  return text;
}

/// The pixels of a region; throws InputError if there are none.
int64_t require_pixels(const cases::CaseJob& c, const std::vector<uint8_t>& region) {
  const int64_t inside = dsa::count_inside(region);
  if (inside > 0) return inside;
  throw InputError("'" + c.row.image +
                   "': no pixel is left inside of region and shutter; give another region, or "
                   "--shutter none");
}

}  // namespace

OpenAngiogram open_angiogram(const cases::CaseJob& c, const AngiographyOptions& o,
                             const Context& context) {
  SequenceReader reader(c.row.image, c.read);
  if (o.contrast != ContrastChoice::kFile) {
    reader.tell_contrast(o.contrast == ContrastChoice::kRaises);
  }
  const Angiogram& about = reader.about();
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
  warn_of_small_blocks(o.config, context);
  dsa::SampleTable table = table_of(about, o.config, context);
  MaskPlan plan = plan_masks(o, about, context);
  for (const std::string& warning : plan.warnings) context.warn(warning);
  std::vector<std::string> notes{
      std::string("differences: ") + (table.is_log ? "log" : "linear") +
      (takes_modality(about, o.config) ? ", by the Modality LUT of the file" : "")};
  std::vector<int> frames = plan.frames();
  return {.reader = std::move(reader),
          .plan = std::move(plan),
          .frames = std::move(frames),
          .table = std::move(table),
          .notes = std::move(notes)};
}

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
  require_pixels(c, region);
  return region;
}

void find_region(const cases::CaseJob& c, const AngiographyOptions& o, OpenAngiogram& open,
                 const Context& context) {
  std::vector<uint8_t> region = region_of_interest(c, o, open.reader.about().grid);
  find_shutter(o.shutter, open, context);
  if (!open.unshuttered.empty()) dsa::keep_common(region, open.unshuttered);
  const int64_t inside = require_pixels(c, region);
  if (inside < static_cast<int64_t>(region.size())) open.region = std::move(region);
}

void find_mask(const AngiographyOptions& o, OpenAngiogram& open, const Context& context) {
  if (is_auto(o)) {
    const std::vector<int> wanted = wanted_frames(o, open.reader.about());
    const size_t last = frame_before_onset(wanted, open, context);
    const size_t first = o.mask == MaskChoice::kBest ? 0 : last;
    open.plan = plan_by_frames({wanted.begin() + static_cast<ptrdiff_t>(first),
                                wanted.begin() + static_cast<ptrdiff_t>(last) + 1},
                               wanted, auto_source(o));
    open.frames = open.plan.frames();
  }
  const MaskPlan& plan = open.plan;
  const std::string masks =
      plan.groups.size() == 1 ? " (frames " + frames_text(plan.groups[0].mask_frames) + ")" : "";
  open.notes.insert(open.notes.begin(), "mask: " + plan.source + masks);
}

void choose_masks(OpenAngiogram& open, const Context& context) {
  const MaskGroup all = open.plan.groups.at(0);
  const Vec3i size = open.reader.about().grid.size;
  if (all.mask_frames.size() == 1 || std::min(size.x, size.y) < kLeastForChoice) return;
  const auto pixels = static_cast<size_t>(open.reader.frame_pixels());
  std::vector<uint16_t> stored(all.mask_frames.size() * pixels);
  for (size_t i = 0; i < all.mask_frames.size(); ++i) {
    open.reader.read(all.mask_frames[i], 1, std::span(stored).subspan(i * pixels, pixels));
  }
  const dsa::MaskCandidates candidates(mask_input(open), stored, context);
  stored.resize(pixels);
  std::map<std::vector<int>, MaskGroup> by_mask;
  for (const int frame : all.frames) {
    context.throw_if_stopped("stopped while masks were chosen");
    open.reader.read(frame, 1, stored);
    std::vector<int> masks;
    for (const size_t i : candidates.best_of(stored, context)) {
      masks.push_back(all.mask_frames[i]);
    }
    by_mask[masks].frames.push_back(frame);
  }
  open.plan.groups.clear();
  for (auto& [mask, group] : by_mask) {
    group.mask_frames = mask;
    open.plan.groups.push_back(std::move(group));
  }
  std::sort(open.plan.groups.begin(), open.plan.groups.end(),
            [](const auto& a, const auto& b) { return a.frames.front() < b.frames.front(); });
}

std::vector<uint8_t> region_of_labels(const LabelVolume& labels) {
  std::vector<uint8_t> inside(static_cast<size_t>(labels.voxels()));
  std::transform(labels.begin(), labels.end(), inside.begin(),
                 [](int32_t label) { return static_cast<uint8_t>(label != 0); });
  return inside;
}

std::string angiography_identity(const dsa::DsaConfig& config, const OpenAngiogram& open) {
  const std::string& path = open.reader.about().path;
  std::string text = version() + " " + sha256_of_file(path);
  for (const std::string& file : detached_files(path)) text += sha256_of_file(file);
  text += config::to_json(config).dump();
  if (!open.reader.about().is_dicom && contrast_raises(open.reader.about())) text += "|raises";
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
