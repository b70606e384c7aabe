// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/angiography_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kQ16 = 65536;

/// Rounded to six digits behind the point: what is measured has fewer, and the text is shorter.
double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

const char* status_of(const dsa::BlockMatch& match) {
  if ((match.flags & dsa::kBlockOutside) != 0) return "outside";
  if ((match.flags & dsa::kBlockUnreliable) != 0) return "unreliable";
  return (match.flags & dsa::kBlockReplaced) != 0 ? "replaced" : "ok";
}

/// One per axis; those of the third axis for volumes alone.
template <class T>
void add_numbers(std::string& text, const char* format, const Vec3<T>& v, bool is_volume) {
  char number[40];
  for (int axis = 0; axis < (is_volume ? 3 : 2); ++axis) {
    std::snprintf(number, sizeof number, format, v[axis]);
    text += number;
    text += ',';
  }
}

Vec3d pixels(const Vec3i& q16) {
  return {q16.x / kQ16, q16.y / kQ16, q16.z / kQ16};
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

BlockCounts count_blocks(std::span<const dsa::BlockMatch> matches) {
  BlockCounts counts;
  counts.all = static_cast<int64_t>(matches.size());
  for (const dsa::BlockMatch& match : matches) {
    const auto has = [&](dsa::BlockFlag flag) { return (match.flags & flag) != 0 ? 1 : 0; };
    counts.outside += has(dsa::kBlockOutside);
    if (has(dsa::kBlockOutside) != 0) continue;
    counts.unreliable += has(dsa::kBlockUnreliable);
    counts.at_edge += has(dsa::kBlockAtEdge);
    if (has(dsa::kBlockUnreliable) == 0) counts.replaced += has(dsa::kBlockReplaced);
  }
  return counts;
}

}  // namespace

std::string grid_header(bool is_volume) {
  const std::string rest = "score0,score,conf,n,overflow,status\n";
  return is_volume ? "frame,i,j,k,cx,cy,cz,dx,dy,dz,dx_raw,dy_raw,dz_raw," + rest
                   : "frame,i,j,cx,cy,dx,dy,dx_raw,dy_raw," + rest;
}

double similarity_of(const dsa::Score& score, dsa::Metric metric) {
  if (score.count == 0) return 0;
  const auto n = static_cast<double>(score.count), sum = static_cast<double>(score.sum);
  if (metric == dsa::Metric::kEhd) return sum / (n * n);
  return std::log(n) - sum / std::ldexp(1, 20) / n;
}

std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric) {
  const bool is_volume = grid.image.z > 1;
  std::string text;
  char numbers[160];
  for (size_t i = 0; i < matches.size(); ++i) {
    const dsa::BlockMatch& match = matches[i];
    const auto block = static_cast<int32_t>(i);
    const Vec3i centre = grid.twice_centre(block);
    text += std::to_string(frame) + ",";
    add_numbers(text, "%d", grid.at(block), is_volume);
    add_numbers(text, "%.1f", centre.cast<double>() / 2, is_volume);
    add_numbers(text, "%.4f", pixels(match.vector), is_volume);
    add_numbers(text, "%.4f", pixels(match.found), is_volume);
    const double counted = std::max<double>(match.best.count, 1);
    std::snprintf(numbers, sizeof numbers, "%.8f,%.8f,%.4f,%u,%.4f,",
                  similarity_of(match.before, metric), similarity_of(match.best, metric),
                  static_cast<double>(match.confidence), match.counted, match.overflow / counted);
    text += numbers;
    text += status_of(match);
    text += '\n';
  }
  return text;
}

FrameRecord record_of(int frame, std::span<const dsa::BlockMatch> matches,
                      const dsa::FrameFigures& figures, const Vec3i& shift, dsa::Metric metric) {
  FrameRecord record;
  record.frame = frame;
  record.blocks = count_blocks(matches);
  record.figures = figures;
  record.shift = shift;
  int64_t searched = 0;
  for (const dsa::BlockMatch& match : matches) {
    if ((match.flags & dsa::kBlockOutside) != 0 || match.best.count == 0) continue;
    record.before += similarity_of(match.before, metric);
    record.after += similarity_of(match.best, metric);
    ++searched;
  }
  record.has_similarity = searched > 0;
  if (searched > 0) {
    record.before /= static_cast<double>(searched);
    record.after /= static_cast<double>(searched);
  }
  return record;
}

Json to_json(const FrameRecord& record, int fraction_bits) {
  const dsa::FrameFigures& figures = record.figures;
  const Vec3d shift = pixels(record.shift);
  const double step = std::ldexp(1, -fraction_bits);  // grey values
  Json json{{"frame", record.frame},
            {"blocks", record.blocks.all},
            {"replaced", record.blocks.replaced},
            {"unreliable", record.blocks.unreliable},
            {"outside", record.blocks.outside},
            {"edge_hits", record.blocks.at_edge}};
  if (record.has_similarity) {
    json["similarity_before"] = rounded(record.before);
    json["similarity_after"] = rounded(record.after);
    json["bin_width"] = std::ldexp(step, figures.bin_shift);
  }
  if (record.has_scores) add_scores(json, record.scores);
  if (record.has_shift) json["shift_px"] = {rounded(shift.x), rounded(shift.y)};
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

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

nlohmann::ordered_json to_json(const SequenceTimes& times, const Device& device) {
  nlohmann::ordered_json json;
  const auto add = [&](const char* name, double seconds) {
    json[name] = std::round(1e6 * seconds) / 1e3;
  };
  if (device.is_cuda()) add("device", times.device);
  add("open", times.open);
  add("read", times.read);
  if (device.is_cuda()) add("upload", times.upload);
  add("compute", times.compute);
  if (device.is_cuda()) add("download", times.download);
  add("score", times.score);
  add("write", times.write);
  add("streaming", times.streaming);
  add("waited_for_reading", times.waited_for_reading);
  add("waited_for_writing", times.waited_for_writing);
  return json;
}

}  // namespace larch::pipeline
