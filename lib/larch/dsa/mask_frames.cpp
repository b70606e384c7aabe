// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/mask_frames.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "larch/dsa/image_agreement.h"
#include "larch/dsa/match/rigid_shift.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/scores.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa {
namespace {

/// The EHD of two frames of a mask has to rise by so much to be worth the motion: less is noise.
constexpr double kWorth = 1.02;
/// Candidates are nearly as good as the best one whose EHD is 9/10 of its; so many make a mask.
constexpr int64_t kNear = 9, kNearOf = 10;
constexpr size_t kFew = 4;

/// Returns the last frame of a mask less another one that is moved to it, in grey values;
/// Correction::kNone says that the motion is not worth it.
SubtractedFrames last_less_moved(const MaskInput& input, size_t frame, DsaConfig config,
                                 const Context& context) {
  config.method = Method::kBlock;  // is the better one of those that find blocks
  config.vessels = input.table.is_log ? Vessels::kBright : Vessels::kDark;  // contrast - mask
  config.normalize = Normalize::kNone;
  MaskInput one = input;
  one.stored = {input.stored[frame]};
  one.region = input.open;  // all of the frame moves
  one.start = {};
  const SequenceMask mask = make_mask(one, config, context);
  const auto last = input.stored.back();
  SubtractedFrames out = subtract_frames(mask, last, config, {false, true, true}, context);
  const ScoreBasis basis = make_score_basis(on_host(mask), context);
  std::vector<FrameScores> scores = score_frames(basis, last, out, config, context);
  confirm_frames(basis, last, out, scores, config, context);
  if (scores[0].corrected.ehd < kWorth * scores[0].uncorrected.ehd) {
    out.figures[0].correction = Correction::kNone;
  }
  return out;
}

SampleFrames shrunk(const SampleFrames& frames, const Context& context) {
  const Vec3i small{frames.size.x / kShrink, frames.size.y / kShrink, 1};
  const auto pixels = static_cast<int64_t>(small.x) * small.y * frames.count;
  SampleFrames out{small, frames.count,
                   Buffer<uint16_t>(context.device, static_cast<size_t>(pixels))};
  shrink({frames.values.data(), frames.size, frames.count, out.values.data()}, context);
  return out;
}

}  // namespace

MaskCandidates::MaskCandidates(MaskInput input, std::span<const uint16_t> stored,
                               const Context& context)
    : input_(std::move(input)),
      samples_(to_samples(Buffer<uint16_t>(context.device, stored), input_.size, input_.table,
                          Buffer<uint8_t>(context.device, input_.open), context)),
      at_zero_(filter_at_zero(samples_, {}, context)),
      small_at_zero_(filter_at_zero(shrunk(samples_, context), {}, context)) {}

std::vector<size_t> MaskCandidates::best_of(std::span<const uint16_t> stored,
                                            const Context& context) const {
  const DsaConfig config;
  const SampleFrames frame =
      to_samples(Buffer<uint16_t>(context.device, stored), input_.size, input_.table,
                 Buffer<uint8_t>(context.device, input_.region), context);
  const SampleFrames at_zero = filter_at_zero(frame, config, context);
  // The candidates are moved to the frame, all of them at once.
  std::vector<Vec3i> units, pixels;
  for (const Vec3i& shift : rigid_shifts(frame.values.data(), at_zero.values.data(), samples_,
                                         at_zero_, input_.table, config, context)) {
    units.push_back(units_of(shift / kShrink));
    pixels.push_back(units.back() / kUnit);
  }
  const SampleFrames small = shrunk(frame, context);
  const SampleFrames small_at_zero = filter_at_zero(small, config, context);
  const Buffer<Vec3i> centres(context.device, pixels), displacements(context.device, units);
  std::vector<int32_t> bins = bin_shifts(small_at_zero_, small_at_zero.values.data(),
                                         centres.data(), input_.table, config, context)
                                  .to_vector();
  bins.assign(bins.size(), *std::min_element(bins.begin(), bins.end()));
  const Buffer<int32_t> bins_on_device(context.device, bins);
  Buffer<Score> scores(context.device, bins.size());
  FrameScoresJob job;
  job.mask = small.values.data();
  job.mask_at_zero = small_at_zero.values.data();
  job.contrast = small_at_zero_.values.data();
  job.size = small.size;
  job.frames = samples_.count;
  job.bin_shift = bins_on_device.data();
  job.displacements = displacements.data();
  job.candidates = 1;
  job.scores = scores.data();
  frame_scores(job, context);
  const std::vector<Score> found = scores.to_vector();
  std::vector<size_t> order(found.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return is_better_ehd(found[a], found[b]); });
  size_t few = 1;
  const auto is_near = [&](size_t candidate) {
    const Score &score = found[candidate], &best = found[order[0]];
    return score.count >= 2 && best.count >= 2 &&
           similarity_q32(score) * kNearOf >= similarity_q32(best) * kNear;
  };
  while (few < std::min(order.size(), kFew) && is_near(order[few])) ++few;
  order.resize(few);
  std::reverse(order.begin(), order.end());
  return order;
}

void register_mask_frames(const MaskInput& input, const DsaConfig& config,
                          std::vector<std::vector<uint16_t>>& samples,
                          std::vector<std::vector<uint16_t>>& values, const Context& context) {
  const int32_t step = 1 << input.table.fraction_bits;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const SubtractedFrames moved = last_less_moved(input, i, config, context);
    if (moved.figures[0].correction == Correction::kNone) continue;
    for (size_t p = 0; p < values[i].size(); ++p) {
      const auto validity = static_cast<Validity>(moved.validity[p]);
      const int32_t taken = validity == Validity::kBeyondMask ? 0 : moved.difference[p] * step;
      const int32_t value = std::clamp<int32_t>(values.back()[p] - taken, 0, kMaximumSample);
      values[i][p] = static_cast<uint16_t>(value);
      const bool counts = samples.back()[p] != kNoSample && validity != Validity::kSaturated;
      samples[i][p] = counts ? values[i][p] : kNoSample;
    }
  }
}

}  // namespace larch::dsa
