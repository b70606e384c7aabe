// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/similarity/frame_scores.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/literal_math.h"
#include "larch/dsa/sampling/block_samples.h"

namespace larch::dsa {

std::vector<uint64_t> entropy_terms(uint32_t most) {
  std::vector<uint64_t> terms(static_cast<size_t>(most) + 1, 0);
  for (uint32_t h = 2; h <= most; ++h) {
    terms[h] = static_cast<uint64_t>(std::floor(1048576.0 * h * std::log(h) + 0.5));
  }
  return terms;
}

int32_t lower_median(std::vector<int32_t>& differences) {
  if (differences.empty()) return 0;
  const auto middle = differences.begin() + static_cast<ptrdiff_t>((differences.size() - 1) / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

namespace {

using cpu::DisplacedRows, cpu::kCounters, cpu::kHistograms, cpu::match_lanes;

/// Returns row y of the mask at a displacement; valid until the next call.
const uint16_t* mask_row(const FrameScoresJob& job, const Vec3i& units, int32_t y,
                         const TapTable& taps, DisplacedRows& rows,
                         std::vector<uint16_t>& literal_row) {
  if (job.literal) {
    const LiteralStep step = literal_step(units);
    for (int32_t x = 0; x < job.size.x; ++x) {
      literal_row[static_cast<size_t>(x)] = literal_sample(job.mask, job.size, {x, y, 0}, step);
    }
    return literal_row.data();
  }
  const Step sx = split_step(units.x), sy = split_step(units.y);
  if (sx.fraction == 0 && sy.fraction == 0) {
    return rows.copied(job.mask_at_zero, sx.pixel, y + sy.pixel);
  }
  return rows.filtered(job.mask, sx.pixel, y + sy.pixel, taps.at[sx.fraction + kUnit / 2],
                       taps.at[sy.fraction + kUnit / 2]);
}

/// Returns the score of one candidate.
Score score_of(const FrameScoresJob& job, int64_t frame, const Vec3i& units, const TapTable& taps,
               DisplacedRows& rows) {
  std::vector<uint32_t> counts(kHistograms * kCounters, 0);
  std::vector<uint16_t> bins(static_cast<size_t>(rows.padded()));
  std::vector<uint16_t> contrast(bins.size(), kNoSample), literal_row(bins.size(), kNoSample);
  const cpu::BinRule rule{0, job.bin_shift[frame]};
  const uint16_t* pixels = job.contrast + frame * job.size.x * job.size.y;
  for (int32_t y = 0; y < job.size.y; y += job.row_step) {
    std::copy_n(pixels + static_cast<int64_t>(y) * job.size.x, job.size.x, contrast.data());
    const uint16_t* mask = mask_row(job, units, y, taps, rows, literal_row);
    match_lanes().bin_row(rule, contrast.data(), mask, rows.padded(), bins.data());
    for (size_t i = 0; i < bins.size(); i += kHistograms) {
      for (size_t k = 0; k < kHistograms; ++k) ++counts[k * kCounters + bins[i + k]];
    }
  }
  Score score;
  for (int32_t bin = 0; bin < kBins; ++bin) {
    uint64_t h = 0;
    for (int64_t k = 0; k < kHistograms; ++k) h += counts[static_cast<size_t>(k * kCounters + bin)];
    score.sum += h * h;
    score.count += static_cast<uint32_t>(h);
  }
  return score;
}

}  // namespace

namespace cpu {

void shrink(const ShrinkJob& job, const Context& context) {
  const Vec3i small{job.size.x / kShrink, job.size.y / kShrink, 1};
  parallel_for_each(context.threads, job.frames * small.y, 16, [&](int64_t row) {
    const uint16_t* frame =
        job.samples + row / small.y * static_cast<int64_t>(job.size.x) * job.size.y;
    for (int32_t x = 0; x < small.x; ++x) {
      job.shrunk[row * small.x + x] =
          shrunk_sample(frame, job.size.x, x, static_cast<int32_t>(row % small.y));
    }
  });
}

void frame_scores(const FrameScoresJob& job, const Context& context) {
  const TapTable taps = gain_taps();
  parallel_for(context.threads, job.frames * job.candidates, 8, [&](int64_t begin, int64_t end) {
    DisplacedRows rows(job.size);
    for (int64_t i = begin; i < end; ++i) {
      job.scores[i] = score_of(job, i / job.candidates, job.displacements[i], taps, rows);
    }
  });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const ShrinkJob&, const Context&)> kShrinkFrames{
    "dsa::shrink", cpu::shrink, LARCH_CUDA_FN(cuda::shrink)};
constexpr Dispatch<void(const FrameScoresJob&, const Context&)> kFrameScores{
    "dsa::frame_scores", cpu::frame_scores, LARCH_CUDA_FN(cuda::frame_scores)};

}  // namespace

void shrink(const ShrinkJob& job, const Context& context) {
  kShrinkFrames(context.device, job, context);
}

void frame_scores(const FrameScoresJob& job, const Context& context) {
  kFrameScores(context.device, job, context);
}

}  // namespace larch::dsa
