// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/sequence_outputs.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// A sequence without times is shown at this pace.
constexpr double kUsualFrameMs = 133;

std::string mask_words(const MaskPlan& plan) {
  if (plan.groups.size() != 1) return "masks by frame";
  const std::vector<int>& frames = plan.groups.front().mask_frames;
  return std::string("mask of frame") + (frames.size() > 1 ? "s " : " ") + frames_text(frames);
}

/// What was done, for the header of a derived file.
std::string derivation_of(const OpenAngiogram& open, const dsa::DsaConfig& config) {
  std::string how = "not corrected for motion";
  if (config.method == dsa::Method::kBlock) how = "motion corrected by histogram block matching";
  if (config.method == dsa::Method::kFlex) how = "motion corrected by flexible pixel shift";
  if (config.method == dsa::Method::kShift) how = "motion corrected by one shift per frame";
  return "Digital subtraction angiography, " + mask_words(open.plan) + ", " + how + ", " +
         (open.table.is_log ? "differences of logarithms" : "differences of linear values");
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

template <class T>
std::span<const T> part(const std::vector<T>& all, size_t at, size_t count) {
  if (all.size() < (at + 1) * count) return {};
  return std::span(all).subspan(at * count, count);
}

std::vector<int16_t> copy_of(std::span<const int16_t> values) {
  return {values.begin(), values.end()};
}

std::string of_frames(int64_t frames) {
  return std::to_string(frames) + (frames == 1 ? " frame" : " frames");
}

}  // namespace

dsa::SequenceWants outputs_wants(const SequenceRequest& request) {
  const AngiographyFiles& files = request.files;
  const bool compares = request.has_scores || !files.preview.empty() || !files.animation.empty();
  return {.field = !files.field.empty(),
          .shifted = compares,
          .uncorrected = compares,
          .shift = compares || !files.native.empty()};
}

SequenceOutputs::SequenceOutputs(const SequenceRequest& request, const dsa::DsaConfig& config,
                                 const OpenAngiogram& open, const Context& context)
    : request_(request),
      config_(config),
      open_(open),
      context_(context),
      frames_(open.plan.frames()),
      pixels_(static_cast<size_t>(open.reader.frame_pixels())),
      grid_(dsa::last_grid(config, open.reader.about().grid.size)),
      correction_grid_(dsa::correction_grid(config, open.reader.about().grid.size)),
      difference_(open_file(request.files.difference, /*is_difference=*/true)),
      field_(open_file(request.files.field, /*is_difference=*/false)),
      validity_(open_file(request.files.validity, /*is_difference=*/false)),
      grid_csv_(request.files.grid, context),
      animation_(request.files.animation, context) {
  grid_csv_.fill([&] {
    csv_.open(grid_csv_.temporary(), std::ios::binary);
    csv_ << grid_header(/*is_volume=*/false);
  });
  if (animation_) {
    shown_ = std::make_unique<AnimationFrames>(open.reader.about().grid.size,
                                               static_cast<int64_t>(frames_.size()));
  }
}

SequenceOutputs::~SequenceOutputs() = default;

SequenceOutputs::File SequenceOutputs::open_file(const std::string& path,
                                                 bool is_difference) const {
  File file;
  file.output = GrowingOutput(path, context_);
  file.output.fill([&] {
    const Angiogram& about = open_.reader.about();
    SequenceHeader header;
    const bool is_field = path == request_.files.field;
    header.grid = is_field ? field_grid(about.grid, request_.field_units) : about.grid;
    header.frames = static_cast<int64_t>(frames_.size());
    header.times_ms = times_of(about, frames_);
    if (is_difference && file_extension(path) == ".dcm") {
      header.xa =
          derived_xa_header(about, angiography_identity(request_.input.path, config_, open_),
                            derivation_of(open_, config_), open_.table.is_log);
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
  const auto blocks = static_cast<size_t>(grid_.blocks());
  const auto matches = part(result.matches, at, blocks);
  FrameRecord record =
      record_of(frame, matches, result.figures[at], result.shift[at], config_.metric);
  const auto uncorrected = part(result.uncorrected, at, pixels_);
  const auto shifted = part(result.shifted, at, pixels_);
  const auto corrected = part(result.difference, at, pixels_);
  if (grid_csv_) csv_ << grid_rows(frame, grid_, matches, config_.metric);
  if (shown_) {
    shown_->add(static_cast<int64_t>(records_.size()), uncorrected, shifted, corrected);
  }
  if (!request_.files.preview.empty() && scores.vessel_pixels > most_vessels_) {
    most_vessels_ = scores.vessel_pixels;
    keep_preview(frame, at, result);
  }
  record.scores = scores;
  record.has_scores = request_.has_scores;
  record.has_shift = !shifted.empty() || !request_.files.native.empty();
  records_.push_back(record);
}

void SequenceOutputs::keep_preview(int frame, size_t at, const dsa::SubtractedFrames& result) {
  preview_->frame = frame;
  preview_->size = open_.reader.about().grid.size;
  preview_->uncorrected = copy_of(part(result.uncorrected, at, pixels_));
  preview_->shifted = copy_of(part(result.shifted, at, pixels_));
  preview_->corrected = copy_of(part(result.difference, at, pixels_));
  const auto vectors = part(result.vectors, at, static_cast<size_t>(correction_grid_.blocks()));
  preview_->vectors = {vectors.begin(), vectors.end()};
}

void SequenceOutputs::warn_of_frames() const {
  int64_t edge_blocks = 0, edge_frames = 0, folded = 0, lost = 0, empty = 0;
  for (const FrameRecord& record : records_) {
    edge_blocks += record.blocks.at_edge;
    edge_frames += record.blocks.at_edge > 0 ? 1 : 0;
    folded += record.figures.field.least_jacobian <= 0 ? 1 : 0;
    const bool is_searched = record.blocks.all > record.blocks.outside;
    lost += is_searched && record.blocks.unreliable + record.blocks.outside == record.blocks.all;
    empty += record.blocks.all > 0 && !is_searched ? 1 : 0;
  }
  const std::string name = "'" + request_.input.path + "': ";
  if (edge_blocks > 0) {
    context_.warn(name + "the motion of " + std::to_string(edge_blocks) +
                  (edge_blocks == 1 ? " block in " : " blocks in ") + of_frames(edge_frames) +
                  " may exceed the search range of " + std::to_string(config_.range) +
                  " pixels; they count as unreliable; give a larger --range or --init global");
  }
  if (empty > 0) {
    context_.warn(name + of_frames(empty) +
                  " hold no block with enough pixels that count (black, saturated or outside of "
                  "the region); they are subtracted without correction");
  }
  if (lost > 0) {
    context_.warn(name + "no block of " + of_frames(lost) + " could be matched reliably; " +
                  (config_.outlier_unreliable ? "they are subtracted without correction"
                                              : "their vectors are used all the same"));
  }
  if (folded > 0) {
    context_.warn(name + "the motion of " + of_frames(folded) +
                  " folds (least_jacobian in the report); use larger blocks or --smooth_field");
  }
}

void SequenceOutputs::add_figures(Outputs& outputs) const {
  BlockCounts blocks;
  std::vector<double> uncorrected, shifted, corrected;
  double longest = 0;
  Json frames = Json::array();
  for (const FrameRecord& record : records_) {
    blocks.all += record.blocks.all;
    blocks.unreliable += record.blocks.unreliable;
    blocks.replaced += record.blocks.replaced;
    blocks.outside += record.blocks.outside;
    blocks.at_edge += record.blocks.at_edge;
    longest = std::max(longest, record.figures.field.longest_px);
    uncorrected.push_back(record.scores.uncorrected.rms);
    shifted.push_back(record.scores.shifted.rms);
    corrected.push_back(record.scores.corrected.rms);
    frames.push_back(to_json(record, open_.table.fraction_bits));
  }
  outputs.metric("frames", static_cast<double>(records_.size()))
      .metric("blocks", static_cast<double>(blocks.all))
      .metric("replaced", static_cast<double>(blocks.replaced))
      .metric("unreliable", static_cast<double>(blocks.unreliable))
      .metric("outside", static_cast<double>(blocks.outside))
      .metric("edge_hits", static_cast<double>(blocks.at_edge))
      .metric("longest_motion_px", longest);
  if (request_.has_scores) {
    outputs.metric("rms_uncorrected", median_of(uncorrected))
        .metric("rms_shift", median_of(shifted))
        .metric("rms_corrected", median_of(corrected));
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
  const Angiogram& about = open_.reader.about();
  animation_.fill(
      [&] { shown_->write(animation_.temporary(), frame_ms_of(times_of(about, frames_))); });
  warn_of_frames();
  Outputs outputs;
  outputs.grid(request_.input.path, describe(about.grid) + ", " + of_frames(about.frames));
  for (const std::string& note : open_.notes) outputs.note(note);
  outputs.add(difference_.output).add(field_.output);
  outputs.add(validity_.output).add(grid_csv_);
  outputs.add(request_.files.preview,
              [preview = preview_, grid = correction_grid_](const std::string& path) {
                write_png(path, preview_picture(*preview, grid));
              });
  outputs.add(animation_);
  add_figures(outputs);
  return outputs;
}

}  // namespace larch::pipeline
