// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "larch/core/error.h"
#include "larch/dsa/confirmation.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// A sequence without times is shown at this pace.
constexpr double kUsualFrameMs = 133;
/// Words of the report, by dsa::Correction.
constexpr std::array<const char*, 3> kCorrections{"blocks", "shift", "none"};

/// The derivation, for the header of a derived file.
std::string derivation_of(const OpenAngiogram& open, const dsa::DsaConfig& config) {
  std::string how = "not corrected for motion";
  // Each frame is checked when it is subtracted, after this text is written.
  const std::string unless =
      config.literal ? "" : " or, where that fits better, by the shift of the frame or not at all";
  if (config.method == dsa::Method::kBlock) {
    how = "motion corrected by histogram block matching" + unless;
  }
  if (config.method == dsa::Method::kFlex) {
    how = "motion corrected by flexible pixel shift" + unless;
  }
  if (config.method == dsa::Method::kShift) how = "motion corrected by one shift per frame";
  const std::vector<MaskGroup>& groups = open.plan.groups;
  const bool has_means = std::any_of(
      groups.begin(), groups.end(), [](const auto& group) { return group.mask_frames.size() > 1; });
  return "Digital subtraction angiography, " +
         (groups.size() == 1 ? "mask of " + frame_words(groups[0].mask_frames) : "masks by frame") +
         (has_means && dsa::registers_masks(config, open.reader.about().grid.size)
              ? " registered to each other where they move"
              : "") +
         ", " + how + ", " +
         (open.table.is_log ? "differences of logarithms" : "differences of linear values");
}

std::vector<double> times_of(const OpenAngiogram& open) {
  const Angiogram& about = open.reader.about();
  std::vector<double> times;
  if (about.times_ms.size() < static_cast<size_t>(about.frames)) return times;
  for (const int frame : open.frames) times.push_back(about.times_ms[static_cast<size_t>(frame)]);
  return times;
}

double frame_ms_of(const std::vector<double>& times) {
  if (times.size() < 2) return kUsualFrameMs;
  return (times.back() - times.front()) / static_cast<double>(times.size() - 1);
}

std::string of_frames(int64_t frames) {
  return std::to_string(frames) + (frames == 1 ? " frame" : " frames");
}

/// Rounded to six digits behind the point: what is measured has fewer, and the text is shorter.
double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

/// The mean similarity of the blocks that were searched, before and after.
void add_similarity(Json& json, std::span<const dsa::BlockMatch> matches, dsa::Metric metric,
                    double bin_width) {
  double before = 0, after = 0;
  int64_t searched = 0;
  for (const dsa::BlockMatch& match : matches) {
    if ((match.flags & dsa::kBlockOutside) != 0 || match.best.count == 0) continue;
    before += similarity_of(match.before, metric);
    after += similarity_of(match.best, metric);
    ++searched;
  }
  if (searched == 0) return;
  json["similarity_before"] = rounded(before / static_cast<double>(searched));
  json["similarity_after"] = rounded(after / static_cast<double>(searched));
  json["bin_width"] = bin_width;
}

void add_scores(Json& json, const dsa::FrameScores& scores) {
  const auto add = [&](const char* key, double dsa::ImageScores::*figure) {
    json[key] = {{"uncorrected", rounded(scores.uncorrected.*figure)},
                 {"shift", rounded(scores.shifted.*figure)},
                 {"corrected", rounded(scores.corrected.*figure)}};
  };
  add("ehd", &dsa::ImageScores::ehd);
  add("entropy", &dsa::ImageScores::entropy);
  add("rms_nonvessel", &dsa::ImageScores::rms);
  add("mad_nonvessel", &dsa::ImageScores::mad);
  add("edge_index", &dsa::ImageScores::edge_index);
  add("vessel_cnr", &dsa::ImageScores::vessel_cnr);
  json["counted_pixels"] = scores.counted_pixels;
  json["vessel_pixels"] = scores.vessel_pixels;
}

/// The lower median of those that are numbers; NaN of none.
double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One item for each frame, because each has a shift of its own.
std::vector<MaskItem> items_of(const MaskPlan& plan, const std::map<int, Vec3i>& shifts) {
  std::map<int, MaskItem> items;
  for (const MaskGroup& group : plan.groups) {
    for (const int frame : group.frames) {
      MaskItem& item = items[frame];
      item.operation = MaskOperation::kAverage;
      item.ranges = {{frame, frame}};
      item.mask_frames = group.mask_frames;
      item.contrast_averaging = group.averaging;
      // Vectors pull: the mask is moved the other way.
      item.shift_px = shifts.at(frame).cast<double>() * -std::ldexp(1, -dsa::kVectorBits);
    }
  }
  std::vector<MaskItem> all;
  all.reserve(items.size());
  for (const auto& [frame, item] : items) all.push_back(item);
  return all;
}

XaHeader native_header(const OpenAngiogram& open, const std::map<int, Vec3i>& shifts,
                       const dsa::DsaConfig& config) {
  const Angiogram& about = open.reader.about();
  XaHeader header = derived_xa_header(
      about, angiography_identity(config, open) + " native",
      "Pixels of the source, with a mask operation for each frame: its best shift as a whole by "
      "histograms of differences",
      about.intensity == PixelIntensity::kLog);
  header.series_description =
      "With shifts" + (about.series_description.empty() ? "" : ": " + about.series_description);
  header.bits = about.bits;
  header.intensity = about.intensity;
  header.intensity_sign = about.intensity_sign;
  header.is_monochrome1 = about.is_monochrome1;
  header.rescaling = rescaling_of(about);
  header.masks = items_of(open.plan, shifts);
  return header;
}

}  // namespace

bool measures_frames(const AngiographyOptions& o) {
  return o.scores || dsa::confirms(o.config, {1, 1, 1});
}

dsa::SequenceWants outputs_wants(const cases::CaseJob& c, const AngiographyOptions& o) {
  const bool compares = measures_frames(o) || c.wants("preview") || c.wants("animation");
  return {.field = c.wants("field"),
          .shifted = compares,
          .uncorrected = compares,
          .shift = compares || c.wants("native")};
}

void check_sequence_files(const cases::CaseJob& c, const Angiogram& about, int64_t frames) {
  for (const char* flag : {"output", "validity"}) {
    if (c.wants(flag)) require_sequence_path(c.file(flag), about.grid, frames);
  }
  if (c.wants("field")) {
    require_sequence_path(c.file("field"), about.grid, frames, /*vectors=*/true);
  }
  if (!c.wants("native")) return;
  require_sequence_path(c.file("native"), about.grid, about.frames);
  if (rescaling_of(about)) return;
  throw InputError("'" + about.path +
                   "': its Modality LUT is no straight line, which --native cannot keep; leave "
                   "--native out");
}

SequenceOutputs::SequenceOutputs(const cases::CaseJob& c, const AngiographyOptions& o,
                                 OpenAngiogram& open, const Context& context)
    : case_(c),
      options_(o),
      open_(open),
      context_(context),
      wants_(outputs_wants(c, o)),
      size_(open.reader.about().grid.size),
      grid_(dsa::last_grid(o.config, size_)),
      correction_grid_(dsa::correction_grid(o.config, size_)),
      difference_(open_file("output")),
      field_(open_file("field")),
      validity_(open_file("validity")),
      grid_csv_(c.file("grid"), context),
      animation_(c.file("animation"), context),
      native_(c.file("native"), context) {
  grid_csv_.fill([&] {
    csv_.open(grid_csv_.temporary(), std::ios::binary);
    csv_ << grid_header(/*is_volume=*/false);
  });
  if (animation_) shown_.emplace(size_, static_cast<int64_t>(open.frames.size()));
}

SequenceOutputs::File SequenceOutputs::open_file(const std::string& flag) const {
  File file;
  file.output = GrowingOutput(case_.file(flag), context_);
  file.output.fill([&] {
    const Angiogram& about = open_.reader.about();
    SequenceHeader header;
    header.grid = flag == "field" ? options_.field_grid(about.grid) : about.grid;
    header.frames = static_cast<int64_t>(open_.frames.size());
    header.times_ms = times_of(open_);
    if (file_extension(case_.file(flag)) == ".dcm") {
      header.xa = derived_xa_header(about, angiography_identity(options_.config, open_),
                                    derivation_of(open_, options_.config), open_.table.is_log);
    }
    file.writer.emplace(file.output.temporary(), header, context_.threads);
  });
  return file;
}

void SequenceOutputs::write(const dsa::SubtractedFrames& result) {
  difference_.output.fill([&] { difference_.writer->write(result.difference); });
  field_.output.fill([&] { field_.writer->write(result.field_px); });
  validity_.output.fill(
      [&] { validity_.writer->write(std::span<const uint8_t>(result.validity)); });
}

void SequenceOutputs::add(const std::vector<int>& frames, const dsa::SubtractedFrames& result,
                          const std::vector<dsa::FrameScores>& scores) {
  for (size_t at = 0; at < frames.size(); ++at) add_frame(frames[at], at, result, scores[at]);
  grid_csv_.fill([&] {
    if (!csv_.flush()) throw OutputError("cannot write '" + grid_csv_.temporary() + "'");
  });
}

void SequenceOutputs::add_frame(int frame, size_t at, const dsa::SubtractedFrames& result,
                                const dsa::FrameScores& scores) {
  const auto matches = part_of(result.matches, at, static_cast<size_t>(grid_.blocks()));
  if (grid_csv_) csv_ << grid_rows(frame, grid_, matches, options_.config.metric);
  if (shown_) shown_->add(result, at);
  if (case_.wants("preview") && scores.vessel_pixels > most_vessels_) {
    most_vessels_ = scores.vessel_pixels;
    const auto blocks = static_cast<size_t>(correction_grid_.blocks());
    preview_ = preview_frame(frame, result, at, size_, part_of(result.vectors, at, blocks));
  }
  BlockCounts blocks;
  count_blocks(matches, result.figures[at], blocks);
  count_blocks(matches, result.figures[at], blocks_);
  frames_.push_back(frame_json(frame, at, result, scores, blocks));
  shifts_[frame] = result.shift[at];
  const bool is_searched = blocks.all > blocks.outside;
  at_edge_ += blocks.at_edge > 0 ? 1 : 0;
  folded_ += result.figures[at].field.least_jacobian <= 0 ? 1 : 0;
  if (is_searched) ++corrections_[static_cast<size_t>(result.figures[at].correction)];
  empty_ += blocks.all > 0 && !is_searched ? 1 : 0;
  longest_px_ = std::max(longest_px_, result.figures[at].field.longest_px);
  rms_[0].push_back(scores.uncorrected.rms);
  rms_[1].push_back(scores.shifted.rms);
  rms_[2].push_back(scores.corrected.rms);
  worse_ += scores.corrected.rms > scores.uncorrected.rms ? 1 : 0;
}

/// The figures of a frame, for the report.
Json SequenceOutputs::frame_json(int frame, size_t at, const dsa::SubtractedFrames& result,
                                 const dsa::FrameScores& scores, const BlockCounts& blocks) const {
  const dsa::FrameFigures& figures = result.figures[at];
  const double step = std::ldexp(1, -open_.table.fraction_bits);  // grey values
  Json json{{"frame", frame}, {"mask_frames", open_.plan.group_of(frame).mask_frames}};
  blocks.each([&](const char* key, int64_t count) { json[key] = count; });
  add_similarity(json, part_of(result.matches, at, static_cast<size_t>(grid_.blocks())),
                 options_.config.metric, std::ldexp(step, figures.bin_shift));
  if (options_.scores) add_scores(json, scores);
  if (wants_.shift) {
    const Vec3d shift = pixels_of_q16(result.shift[at]);
    json["shift_px"] = {rounded(shift.x), rounded(shift.y)};
  }
  const dsa::Method method = options_.config.method;
  if (method == dsa::Method::kBlock || method == dsa::Method::kFlex) {
    json["correction"] = kCorrections[static_cast<size_t>(figures.correction)];
  }
  json["mean_motion_px"] = rounded(figures.field.mean_px);
  json["longest_motion_px"] = rounded(figures.field.longest_px);
  json["least_jacobian"] = rounded(figures.field.least_jacobian);
  json["mode"] = rounded(figures.subtracted.mode / 16.0 * step);
  const uint32_t* pixels_by = figures.subtracted.pixels;
  json["pixels"] = {{"valid", pixels_by[0]},
                    {"beyond_mask", pixels_by[1]},
                    {"saturated", pixels_by[2]},
                    {"outside", pixels_by[3]},
                    {"clipped", figures.subtracted.clipped}};
  return json;
}

/// All frames, pixel by pixel those of the file, with a Mask Subtraction Sequence that has an item
/// for each subtracted frame: its mask frames and its best shift as a whole.
void SequenceOutputs::write_native() const {
  const Angiogram& about = open_.reader.about();
  SequenceWriter writer(
      native_.temporary(),
      {about.grid, about.frames, about.times_ms, native_header(open_, shifts_, options_.config)},
      context_.threads);
  std::vector<uint16_t> pixels(static_cast<size_t>(about.grid.voxels()));
  for (int64_t frame = 0; frame < about.frames; ++frame) {
    context_.throw_if_stopped("stopped while frames were copied; no output was written");
    open_.reader.read(frame, 1, pixels);
    writer.write(std::span<const uint16_t>(pixels));
  }
  writer.finish();
}

void SequenceOutputs::warn_of_frames() const {
  const std::string name = "'" + case_.row.image + "': ";
  if (blocks_.at_edge > 0) {
    context_.warn(name + "the motion of " + std::to_string(blocks_.at_edge) +
                  (blocks_.at_edge == 1 ? " block in " : " blocks in ") + of_frames(at_edge_) +
                  " may exceed the search range of " + std::to_string(options_.config.range) +
                  " pixels; give a larger --range");
  }
  if (empty_ > 0) {
    context_.warn(name + of_frames(empty_) +
                  " hold no block with enough pixels that count (black, saturated or outside of "
                  "the region); they are subtracted without correction");
  }
  if (corrections_[1] + corrections_[2] > 0) {
    context_.warn(name + "blocks do not fit better by the motion that was found in " +
                  of_frames(corrections_[1] + corrections_[2]) + ": " +
                  std::to_string(corrections_[1]) + " corrected by the shift of the frame alone, " +
                  std::to_string(corrections_[2]) + " not corrected");
  }
  if (worse_ > 0) {
    context_.warn(name + "the correction makes " + of_frames(worse_) +
                  " worse: more is left outside of vessels than without it (rms_nonvessel in the "
                  "report)" +
                  (options_.config.literal ? "; leave --literal out" : ""));
  }
  if (folded_ > 0) {
    context_.warn(name + "the motion of " + of_frames(folded_) +
                  " folds (least_jacobian in the report); use larger blocks (--passes)");
  }
}

void SequenceOutputs::add_figures(Outputs& outputs) const {
  outputs.metric("frames", static_cast<double>(frames_.size()));
  blocks_.each(
      [&](const char* name, int64_t count) { outputs.metric(name, static_cast<double>(count)); });
  outputs.metric("longest_motion_px", longest_px_);
  outputs.metric("frames_shifted", static_cast<double>(corrections_[1]))
      .metric("frames_uncorrected", static_cast<double>(corrections_[2]));
  if (options_.scores) {
    outputs.metric("rms_uncorrected", median_of(rms_[0]))
        .metric("rms_shift", median_of(rms_[1]))
        .metric("rms_corrected", median_of(rms_[2]))
        .metric("frames_worse", static_cast<double>(worse_));
  }
  outputs.report("frames", frames_);
}

Outputs SequenceOutputs::finish() {
  for (File* file : {&difference_, &field_, &validity_}) {
    file->output.fill([&] { file->writer->finish(); });
  }
  grid_csv_.fill([&] {
    csv_.close();
    if (!csv_) throw OutputError("cannot write '" + grid_csv_.temporary() + "'");
  });
  animation_.fill([&] { shown_->write(animation_.temporary(), frame_ms_of(times_of(open_))); });
  native_.fill([&] { write_native(); });
  warn_of_frames();
  const Angiogram& about = open_.reader.about();
  Outputs outputs;
  outputs.grid(case_.row.image, describe(about.grid) + ", " + of_frames(about.frames));
  for (const std::string& note : open_.notes) outputs.note(note);
  outputs.add(difference_.output).add(field_.output);
  outputs.add(validity_.output).add(grid_csv_);
  outputs.add(case_.file("preview"),
              [preview = std::move(preview_), grid = correction_grid_](const std::string& path) {
                write_png(path, preview_picture(preview, grid));
              });
  outputs.add(animation_).add(native_);
  add_figures(outputs);
  return outputs;
}

}  // namespace larch::pipeline
