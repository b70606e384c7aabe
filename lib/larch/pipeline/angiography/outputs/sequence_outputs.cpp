// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "larch/app/build_info.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// A sequence without times is shown at this pace.
constexpr double kUsualFrameMs = 133;
/// Words of the report, by dsa::Correction.
constexpr std::array<const char*, 3> kCorrections{"blocks", "shift", "none"};

/// Returns the derivation, for the header of a derived file.
std::string derivation_of(const dsa::PreparedSequence& prepared, const dsa::DsaConfig& config,
                          const Vec3i& size) {
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
  const std::vector<dsa::MaskGroup>& groups = prepared.groups;
  const bool has_means = std::any_of(
      groups.begin(), groups.end(), [](const auto& group) { return group.mask_frames.size() > 1; });
  return "Digital subtraction angiography, " +
         (groups.size() == 1 ? "mask of " + dsa::frame_words(groups[0].mask_frames)
                             : "masks by frame") +
         (has_means && dsa::registers_masks(config, size)
              ? " registered to each other where they move"
              : "") +
         ", " + how + ", " +
         (prepared.table.is_log ? "differences of logarithms" : "differences of linear values");
}

std::vector<double> times_of(const Angiogram& about, const std::vector<int>& frames) {
  std::vector<double> times;
  if (about.times_ms.size() < static_cast<size_t>(about.frames)) return times;
  for (const int frame : frames) times.push_back(about.times_ms[static_cast<size_t>(frame)]);
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

/// Returns the lower median of the rms of those frames that have one; NaN of none.
double median_rms(const std::vector<dsa::FrameRow>& rows,
                  dsa::ImageScores dsa::FrameScores::*image) {
  std::vector<double> values;
  for (const dsa::FrameRow& row : rows) {
    if (const double rms = (row.scores.*image).rms; !std::isnan(rms)) values.push_back(rms);
  }
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Rule>
int64_t count_rows(const std::vector<dsa::FrameRow>& rows, const Rule& rule) {
  return std::count_if(rows.begin(), rows.end(), rule);
}

bool is_worse(const dsa::FrameRow& row) {
  return row.scores.corrected.rms > row.scores.uncorrected.rms;
}

/// Returns the frames with blocks that were searched that are corrected so in the end.
int64_t corrected_by(const std::vector<dsa::FrameRow>& rows, dsa::Correction correction) {
  return count_rows(rows, [&](const dsa::FrameRow& row) {
    return row.blocks.all > row.blocks.outside && row.figures.correction == correction;
  });
}

/// Returns the sum over all frames.
dsa::BlockCounts blocks_of(const std::vector<dsa::FrameRow>& rows) {
  dsa::BlockCounts sum;
  for (const dsa::FrameRow& row : rows) {
    sum.all += row.blocks.all;
    sum.replaced += row.blocks.replaced;
    sum.unreliable += row.blocks.unreliable;
    sum.outside += row.blocks.outside;
    sum.at_edge += row.blocks.at_edge;
  }
  return sum;
}

/// One item for each frame, because each has a shift of its own.
std::vector<MaskItem> items_of(const std::vector<dsa::FrameRow>& rows) {
  std::vector<MaskItem> items;
  for (const dsa::FrameRow& row : rows) {
    MaskItem& item = items.emplace_back();
    item.operation = MaskOperation::kAverage;
    item.ranges = {{row.frame, row.frame}};
    item.mask_frames = row.mask_frames;
    item.contrast_averaging = row.averaging;
    // Vectors pull: the mask is moved the other way.
    item.shift_px = row.shift.cast<double>() * -std::ldexp(1, -dsa::kVectorBits);
  }
  return items;
}

XaHeader native_header(const Angiogram& about, const dsa::PreparedSequence& prepared,
                       const std::vector<dsa::FrameRow>& rows, const dsa::DsaConfig& config) {
  XaHeader header = derived_xa_header(
      about, angiography_identity(config, about, prepared) + " native",
      "Pixels of the source, with a mask operation for each frame: its best shift as a whole by "
      "histograms of differences",
      about.intensity == PixelIntensity::kLog);
  header.software = version();
  header.series_description =
      "With shifts" + (about.series_description.empty() ? "" : ": " + about.series_description);
  header.bits = about.bits;
  header.intensity = about.intensity;
  header.intensity_sign = about.intensity_sign;
  header.is_monochrome1 = about.is_monochrome1;
  header.rescaling = rescaling_of(about);
  header.masks = items_of(rows);
  return header;
}

/// Returns the figures of a frame, for the report. `fraction_bits`: of samples.
Json frame_json(const dsa::FrameRow& row, const AngiographyOptions& o, bool has_shift,
                int fraction_bits) {
  const dsa::FrameFigures& figures = row.figures;
  const double step = std::ldexp(1, -fraction_bits);  // grey values
  Json json{{"frame", row.frame}, {"mask_frames", row.mask_frames}};
  row.blocks.each([&](const char* key, int64_t count) { json[key] = count; });
  if (row.compared_blocks > 0) {
    json["similarity_before"] = rounded(row.similarity_before);
    json["similarity_after"] = rounded(row.similarity_after);
    json["bin_width"] = std::ldexp(step, figures.bin_shift);
  }
  if (o.scores) add_scores(json, row.scores);
  if (has_shift) {
    const Vec3d shift = pixels_of_q16(row.shift);
    json["shift_px"] = {rounded(shift.x), rounded(shift.y)};
  }
  const dsa::Method method = o.config.method;
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

}  // namespace

dsa::SequenceWants outputs_wants(const cases::CaseJob& c, const AngiographyOptions& o) {
  const bool compares =
      dsa::measures_frames(o.config, o.scores) || c.wants("preview") || c.wants("animation");
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
                                 const OpenAngiogram& open, const dsa::PreparedSequence& prepared,
                                 const Context& context)
    : case_(c),
      options_(o),
      open_(open),
      prepared_(prepared),
      context_(context),
      size_(open.about().grid.size),
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
  if (animation_) shown_.emplace(size_, static_cast<int64_t>(prepared.frames.size()));
}

SequenceOutputs::File SequenceOutputs::open_file(const std::string& flag) const {
  File file;
  file.output = GrowingOutput(case_.file(flag), context_);
  file.output.fill([&] {
    const Angiogram& about = open_.about();
    SequenceHeader header;
    header.grid = flag == "field" ? options_.field_grid(about.grid) : about.grid;
    header.frames = static_cast<int64_t>(prepared_.frames.size());
    header.times_ms = times_of(open_.about(), prepared_.frames);
    if (file_extension(case_.file(flag)) == ".dcm") {
      header.xa = derived_xa_header(about, angiography_identity(options_.config, about, prepared_),
                                    derivation_of(prepared_, options_.config, size_),
                                    prepared_.table.is_log);
      header.xa->software = version();
    }
    file.writer.emplace(file.output.temporary(), header, context_.threads);
  });
  return file;
}

void SequenceOutputs::add(std::span<const dsa::FrameRow> rows,
                          const dsa::SubtractedFrames& result) {
  difference_.output.fill([&] { difference_.writer->write(result.difference); });
  field_.output.fill([&] { field_.writer->write(result.field_px); });
  validity_.output.fill(
      [&] { validity_.writer->write(std::span<const uint8_t>(result.validity)); });
  for (size_t at = 0; at < rows.size(); ++at) {
    const dsa::FrameRow& row = rows[at];
    if (grid_csv_) {
      const auto matches = part_of(result.matches, at, static_cast<size_t>(grid_.blocks()));
      csv_ << grid_rows(row.frame, grid_, matches, options_.config.metric);
    }
    if (shown_) shown_->add(result, at);
    if (case_.wants("preview") && row.scores.vessel_pixels > most_vessels_) {
      most_vessels_ = row.scores.vessel_pixels;
      const auto blocks = static_cast<size_t>(correction_grid_.blocks());
      preview_ = preview_frame(row.frame, result, at, size_, part_of(result.vectors, at, blocks));
    }
    rows_.push_back(row);
  }
  grid_csv_.fill([&] {
    if (!csv_.flush()) throw OutputError("cannot write '" + grid_csv_.temporary() + "'");
  });
}

/// All frames, pixel by pixel those of the file, with a Mask Subtraction Sequence that has an item
/// for each subtracted frame: its mask frames and its best shift as a whole.
void SequenceOutputs::write_native() const {
  const Angiogram& about = open_.about();
  SequenceWriter writer(native_.temporary(),
                        {about.grid, about.frames, about.times_ms,
                         native_header(about, prepared_, rows_, options_.config)},
                        context_.threads);
  std::vector<uint16_t> pixels(static_cast<size_t>(about.grid.voxels()));
  for (int64_t frame = 0; frame < about.frames; ++frame) {
    context_.throw_if_stopped("stopped while frames were copied; no output was written");
    open_.reader->read(frame, 1, pixels);
    writer.write(std::span<const uint16_t>(pixels));
  }
  writer.finish();
}

void SequenceOutputs::warn_of_frames() const {
  const std::string name = "'" + case_.row.image + "': ";
  const int64_t edge_frames = count_rows(rows_, [](const auto& r) { return r.blocks.at_edge > 0; });
  if (edge_frames > 0) {
    const int64_t blocks = blocks_of(rows_).at_edge;
    context_.warn(name + "the motion of " + std::to_string(blocks) +
                  (blocks == 1 ? " block in " : " blocks in ") + of_frames(edge_frames) +
                  " may exceed the search range of " + std::to_string(options_.config.range) +
                  " pixels; give a larger --range");
  }
  const int64_t empty = count_rows(
      rows_, [](const auto& r) { return r.blocks.all > 0 && r.blocks.all == r.blocks.outside; });
  if (empty > 0) {
    context_.warn(name + of_frames(empty) +
                  " hold no block with enough pixels that count (black, saturated or outside of "
                  "the region); they are subtracted without correction");
  }
  const int64_t shifted = corrected_by(rows_, dsa::Correction::kShift);
  const int64_t uncorrected = corrected_by(rows_, dsa::Correction::kNone);
  if (shifted + uncorrected > 0) {
    context_.warn(name + "blocks do not fit better by the motion that was found in " +
                  of_frames(shifted + uncorrected) + ": " + std::to_string(shifted) +
                  " corrected by the shift of the frame alone, " + std::to_string(uncorrected) +
                  " not corrected");
  }
  const int64_t worse = count_rows(rows_, is_worse);
  if (worse > 0) {
    context_.warn(name + "the correction makes " + of_frames(worse) +
                  " worse: more is left outside of vessels than without it (rms_nonvessel in the "
                  "report)" +
                  (options_.config.literal ? "; leave --literal out" : ""));
  }
  const int64_t folded =
      count_rows(rows_, [](const auto& r) { return r.figures.field.least_jacobian <= 0; });
  if (folded > 0) {
    context_.warn(name + "the motion of " + of_frames(folded) +
                  " folds (least_jacobian in the report); use larger blocks (--passes)");
  }
}

void SequenceOutputs::add_figures(Outputs& outputs) const {
  Json frames = Json::array();
  double longest_px = 0;
  for (const dsa::FrameRow& row : rows_) {
    frames.push_back(
        frame_json(row, options_, open_.request.wants.shift, prepared_.table.fraction_bits));
    longest_px = std::max(longest_px, row.figures.field.longest_px);
  }
  const auto add = [&](const char* name, int64_t count) {
    outputs.metric(name, static_cast<double>(count));
  };
  add("frames", static_cast<int64_t>(rows_.size()));
  blocks_of(rows_).each(add);
  outputs.metric("longest_motion_px", longest_px);
  add("frames_shifted", corrected_by(rows_, dsa::Correction::kShift));
  add("frames_uncorrected", corrected_by(rows_, dsa::Correction::kNone));
  if (options_.scores) {
    outputs.metric("rms_uncorrected", median_rms(rows_, &dsa::FrameScores::uncorrected))
        .metric("rms_shift", median_rms(rows_, &dsa::FrameScores::shifted))
        .metric("rms_corrected", median_rms(rows_, &dsa::FrameScores::corrected));
    add("frames_worse", count_rows(rows_, is_worse));
  }
  outputs.report("frames", frames);
}

Outputs SequenceOutputs::finish() {
  for (File* file : {&difference_, &field_, &validity_}) {
    file->output.fill([&] { file->writer->finish(); });
  }
  grid_csv_.fill([&] {
    csv_.close();
    if (!csv_) throw OutputError("cannot write '" + grid_csv_.temporary() + "'");
  });
  animation_.fill([&] {
    shown_->write(animation_.temporary(), frame_ms_of(times_of(open_.about(), prepared_.frames)));
  });
  native_.fill([&] { write_native(); });
  warn_of_frames();
  const Angiogram& about = open_.about();
  Outputs outputs;
  outputs.grid(case_.row.image, describe(about.grid) + ", " + of_frames(about.frames));
  for (const std::string& note : prepared_.notes) outputs.note(note);
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
