// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/rigid_shift.h"

#include <algorithm>

#include "larch/dsa/match/match.h"
#include "larch/dsa/match/search_math.h"

namespace larch::dsa {
namespace {

constexpr int32_t kSmallRange = 16;   // of the small frames
constexpr int32_t kWholeRange = 2;    // around their best: half of kShrink
constexpr int32_t kFitRadius = 2;     // of lattice points,
constexpr int32_t kFitStride = 2;     // in tenths
constexpr int64_t kPixels = 1 << 18;  // that are enough for a frame's histogram
constexpr int32_t kMinimumSide = 16;

/// Candidates around an origin per frame, in steps of `step` units.
struct Round {
  const std::vector<Vec3i>& origins;  // units
  int32_t radius, step;
  int32_t side() const { return 2 * radius + 1; }
  int32_t candidates() const { return side() * side(); }
  Vec3i at(int32_t candidate) const {
    return {candidate % side() - radius, candidate / side() - radius, 0};
  }
};

std::vector<Score> evaluate(FrameScoresJob job, const Round& round, const Context& context) {
  std::vector<Vec3i> displacements;
  for (const Vec3i& origin : round.origins) {
    for (int32_t c = 0; c < round.candidates(); ++c) {
      displacements.push_back(origin + round.at(c) * round.step);
    }
  }
  const Buffer<Vec3i> on_device(context.device, displacements);
  Buffer<Score> scores(context.device, displacements.size());
  job.displacements = on_device.data();
  job.candidates = round.candidates();
  job.scores = scores.data();
  frame_scores(job, context);
  return scores.to_vector();
}

Ranking ranking_of(std::span<const Score> scores) {
  Ranking ranking;
  uint32_t most = 0;
  for (const Score& score : scores) most = std::max(most, score.count);
  ranking.least_count = (most + 1) / 2;
  return ranking;
}

/// Returns the best candidate of each frame, from the origin in steps.
std::vector<Candidate> best_of(const std::vector<Score>& scores, const Round& round) {
  std::vector<Candidate> best;
  const auto n = static_cast<size_t>(round.candidates());
  for (size_t f = 0; f < round.origins.size(); ++f) {
    const std::span<const Score> of_frame(scores.data() + f * n, n);
    const Ranking ranking = ranking_of(of_frame);
    Candidate winner{round.at(0), of_frame[0]};
    for (int32_t c = 1; c < round.candidates(); ++c) {
      const Candidate next{round.at(c), of_frame[static_cast<size_t>(c)]};
      if (wins(next, winner, ranking)) winner = next;
    }
    best.push_back(winner);
  }
  return best;
}

/// Returns the top of the quadratic through a frame's scores in Q16 steps from the origin.
Optimum top_of(std::span<const Score> scores, const Round& round) {
  const Ranking ranking = ranking_of(scores);
  QuadraticSums sums;
  for (int32_t c = 0; c < round.candidates(); ++c) {
    const int64_t q = ranking.similarity(scores[static_cast<size_t>(c)]);
    if (q == kNoSimilarity) return {};
    sums.add(round.at(c).x, round.at(c).y, round.radius, q);
  }
  return quadratic_top(sums, round.radius);
}

void move_to_best(std::vector<Vec3i>& origins, int32_t radius, int32_t step,
                  const FrameScoresJob& job, const Context& context) {
  const Round round{origins, radius, step};
  const std::vector<Candidate> best = best_of(evaluate(job, round, context), round);
  for (size_t f = 0; f < origins.size(); ++f) origins[f] += best[f].at * step;
}

/// Displacements in whole pixels from frames made smaller, in units.
std::vector<Vec3i> coarse_shifts(const uint16_t* mask, const SampleFrames& contrast,
                                 const SampleTable& table, const DsaConfig& config,
                                 const Context& context) {
  const Vec3i small{contrast.size.x / kShrink, contrast.size.y / kShrink, 1};
  const auto pixels = static_cast<size_t>(small.x) * static_cast<size_t>(small.y);
  Buffer<uint16_t> small_mask(context.device, pixels);
  SampleFrames frames{
      small, contrast.count,
      Buffer<uint16_t>(context.device, pixels * static_cast<size_t>(contrast.count))};
  shrink({mask, contrast.size, 1, small_mask.data()}, context);
  shrink({contrast.values.data(), contrast.size, contrast.count, frames.values.data()}, context);
  const Buffer<int32_t> shifts =
      bin_shifts(frames, small_mask.data(), nullptr, table, config, context);
  FrameScoresJob job;
  job.mask = job.mask_at_zero = small_mask.data();
  job.contrast = frames.values.data();
  job.size = small;
  job.frames = contrast.count;
  job.literal = config.literal;
  job.bin_shift = shifts.data();
  std::vector<Vec3i> origins(static_cast<size_t>(contrast.count));
  move_to_best(origins, kSmallRange, kUnit, job, context);
  for (Vec3i& origin : origins) origin = origin * kShrink;
  return origins;
}

/// Displacements of tenths of a pixel moved to the top of the similarity around them.
std::vector<Vec3i> fitted(const std::vector<Vec3i>& tenths, const FrameScoresJob& job,
                          const Context& context) {
  const Round round{tenths, kFitRadius, kFitStride * kTenth};
  const std::vector<Score> scores = evaluate(job, round, context);
  const std::vector<Candidate> best = best_of(scores, round);
  const auto n = static_cast<size_t>(round.candidates());
  const int64_t reach = int64_t{kFitRadius} << 16;  // Q16 steps
  std::vector<Vec3i> vectors;
  for (size_t f = 0; f < tenths.size(); ++f) {
    const Optimum top = top_of({scores.data() + f * n, n}, round);
    if (!top.found) {
      vectors.push_back(q16_of(tenths[f] + best[f].at * round.step));
      continue;
    }
    const auto pixels = [&](int64_t steps) {
      return tenths_to_pixels(std::clamp(steps, -reach, reach) * kFitStride);
    };
    vectors.push_back(q16_of(tenths[f]) + Vec3i{pixels(top.x), pixels(top.y), 0});
  }
  return vectors;
}

}  // namespace

std::vector<Vec3i> rigid_shifts(const uint16_t* mask, const uint16_t* mask_at_zero,
                                const SampleFrames& contrast, const SampleFrames& contrast_at_zero,
                                const SampleTable& table, const DsaConfig& config,
                                const Context& context) {
  const Vec3i& size = contrast.size;
  const auto frames = static_cast<size_t>(contrast.count);
  if (frames == 0 || size.x < kMinimumSide || size.y < kMinimumSide)
    return std::vector<Vec3i>(frames);
  std::vector<Vec3i> units = coarse_shifts(mask, contrast, table, config, context);
  std::vector<Vec3i> pixels;
  pixels.reserve(frames);
  for (const Vec3i& unit : units) pixels.push_back(unit / kUnit);
  const Buffer<Vec3i> centres(context.device, pixels);
  const Buffer<int32_t> shifts =
      bin_shifts(contrast_at_zero, mask_at_zero, centres.data(), table, config, context);
  FrameScoresJob job;
  job.mask = mask;
  job.mask_at_zero = mask_at_zero;
  job.contrast = contrast_at_zero.values.data();
  job.size = size;
  job.frames = contrast.count;
  const int64_t steps = static_cast<int64_t>(size.x) * size.y / kPixels;
  job.row_step = static_cast<int32_t>(std::clamp<int64_t>(steps, 1, size.y));
  job.literal = config.literal;
  job.bin_shift = shifts.data();
  move_to_best(units, kWholeRange, kUnit, job, context);
  move_to_best(units, kFitRadius, kFitStride * kTenth, job, context);
  return fitted(units, job, context);
}

}  // namespace larch::dsa
