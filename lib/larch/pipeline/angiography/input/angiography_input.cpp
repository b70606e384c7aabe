// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/input/angiography_input.h"

#include <algorithm>
#include <cmath>
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

/// Tells whether the values of the file are to be read through its Modality LUT or rescaling. From
/// logarithms that leads back to the intensity, and differences are of the logarithms.
bool takes_modality(const Angiogram& about, const dsa::DsaConfig& config) {
  const bool is_log =
      about.intensity == PixelIntensity::kLog ||
      (about.intensity != PixelIntensity::kLinear && config.stored == dsa::Domain::kLog);
  return !about.modality.empty() && !is_log;
}

/// What the values of a file mean, which begin at 0 whatever the sign of the file's; `config` is
/// told in the same unit what is dark.
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

/// The frames to subtract, and those that the mask is looked for in.
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

/// The pixels of a frame in the region of interest. Throws UsageError for a rectangle or a polygon
/// that is not within the frame, and InputError for a mask that cannot be read, has another size or
/// leaves no pixel.
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

/// What the collimator leaves by the file; empty: the file does not say it.
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
