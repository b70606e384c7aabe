// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/angiography_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace larch::pipeline {
namespace {

const char* status_of(const dsa::BlockMatch& match) {
  if ((match.flags & dsa::kBlockOutside) != 0) return "outside";
  if ((match.flags & dsa::kBlockOfFrame) != 0) return "frame";
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

}  // namespace

std::string grid_header(bool is_volume) {
  const std::string rest = "score0,score,sd_least,sd_most,n,overflow,status\n";
  return is_volume ? "frame,i,j,k,cx,cy,cz,dx,dy,dz,dx_raw,dy_raw,dz_raw," + rest
                   : "frame,i,j,cx,cy,dx,dy,dx_raw,dy_raw," + rest;
}

std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric) {
  const bool is_volume = grid.image.z > 1;
  std::string text;
  char numbers[160];
  for (size_t i = 0; i < matches.size(); ++i) {
    const dsa::BlockMatch& match = matches[i];
    const auto block = static_cast<int32_t>(i);
    text += std::to_string(frame) + ",";
    add_numbers(text, "%d", grid.at(block), is_volume);
    add_numbers(text, "%.1f", grid.twice_centre(block).cast<double>() / 2, is_volume);
    add_numbers(text, "%.4f", pixels_of_q16(match.vector), is_volume);
    add_numbers(text, "%.4f", pixels_of_q16(match.found), is_volume);
    const double counted = std::max<double>(match.best.count, 1);
    std::snprintf(numbers, sizeof numbers, "%.8f,%.8f,%.4f,%.4f,%u,%.4f,",
                  similarity_of(match.before, metric), similarity_of(match.best, metric),
                  static_cast<double>(match.least_deviation_px),
                  static_cast<double>(match.most_deviation_px), match.counted,
                  match.overflow / counted);
    text += numbers;
    text += status_of(match);
    text += '\n';
  }
  return text;
}

void count_blocks(std::span<const dsa::BlockMatch> matches, const dsa::FrameFigures& figures,
                  BlockCounts& counts) {
  counts.at_edge += figures.edge_hits;
  counts.all += static_cast<int64_t>(matches.size());
  for (const dsa::BlockMatch& match : matches) {
    const auto has = [&](dsa::BlockFlag flag) { return (match.flags & flag) != 0 ? 1 : 0; };
    counts.outside += has(dsa::kBlockOutside);
    if (has(dsa::kBlockOutside) != 0) continue;
    counts.unreliable += has(dsa::kBlockUnreliable);
    if (has(dsa::kBlockUnreliable) == 0) counts.replaced += has(dsa::kBlockReplaced);
  }
}

double similarity_of(const dsa::Score& score, dsa::Metric metric) {
  if (score.count == 0) return 0;
  const auto n = static_cast<double>(score.count), sum = static_cast<double>(score.sum);
  if (metric == dsa::Metric::kEhd) return sum / (n * n);
  return std::log(n) - sum / std::ldexp(1, 20) / n;
}

}  // namespace larch::pipeline
