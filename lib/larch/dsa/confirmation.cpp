// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/confirmation.h"

#include <algorithm>
#include <cmath>

#include "larch/dsa/field/consistency.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/similarity/entropy.h"
#include "larch/dsa/similarity/rank_math.h"

namespace larch::dsa {
namespace {

/// Scores of all blocks where a field puts them.
std::vector<BlockMatch> scores_at(const PassInput& pass, const BaseField& base,
                                  const Buffer<int32_t>& bin_shift, const Context& context) {
  DsaConfig config = pass.config;
  config.search = Search::kCds;  // BlockMatch::before is all that is asked for
  config.subsearch = SubSearch::kCds;
  config.rounds = 0;
  const PassInput judged{pass.grid, pass.mask, pass.frames, config};
  Buffer<BlockMatch> matches(context.device,
                             static_cast<size_t>(pass.frames.at_zero.count * pass.grid.blocks()));
  MatchJob job = job_of(judged, bin_shift);
  job.range = 1;
  job.base = base;
  job.out = matches.data();
  match_blocks(job, context);
  return matches.to_vector();
}

/// The same where one translation of each frame, Q16, puts them.
std::vector<BlockMatch> scores_of_shifts(const PassInput& pass, const std::vector<Vec3i>& shifts,
                                         const Buffer<int32_t>& bin_shift, const Context& context) {
  const BlockGrid whole = make_block_grid(pass.grid.image, pass.grid.image, pass.grid.image);
  const Buffer<Vec3i> vectors(context.device, shifts);
  DsaConfig rigid = pass.config;
  rigid.border_field = BorderField::kClamp;
  return scores_at({pass.grid, pass.mask, pass.frames, rigid}, {&whole, vectors.data()}, bin_shift,
                   context);
}

/// Blocks that were filled from their neighbours. In frames without any vector of their own they
/// are filled with 0, and stay so: nothing tells whether the shift of such a frame is true.
std::vector<uint8_t> filled_blocks(std::span<const BlockMatch> matches, int32_t blocks) {
  std::vector<uint8_t> is_filled;
  const auto is_replaced = [](const BlockMatch& m) { return (m.flags & kBlockReplaced) != 0; };
  for (size_t first = 0; first < matches.size(); first += static_cast<size_t>(blocks)) {
    const auto frame = matches.subspan(first, static_cast<size_t>(blocks));
    const bool has_found = !std::all_of(frame.begin(), frame.end(), is_replaced);
    for (const BlockMatch& match : frame) {
      const bool is_searched = (match.flags & kBlockOutside) == 0;
      is_filled.push_back(has_found && is_searched && is_replaced(match) ? 1 : 0);
    }
  }
  return is_filled;
}

/// What a frame is corrected by best. EHD is compared under the same noise; differences are not:
/// a mask that is sampled between pixels has less noise, so that any shift seems to help.
Correction best_correction(const FrameScores& scores, bool has_vectors) {
  constexpr double kNoise = 5;  // times 1 / sqrt(pixels): EHD of noise at its best shift
  const ImageScores &none = scores.uncorrected, &shift = scores.shifted;
  const auto pixels = static_cast<double>(scores.counted_pixels);
  const bool shifts = shift.rms < none.rms &&
                      shift.ehd > none.ehd * (1 + kNoise / std::sqrt(std::max(pixels, 1.0)));
  const bool is_worse = scores.corrected.rms > (shifts ? shift : none).rms;
  if (has_vectors && !is_worse) return Correction::kBlocks;
  return shifts ? Correction::kShift : Correction::kNone;
}

/// Puts the only frame of `one` in place of a frame of `all`.
void replace_images(SubtractedFrames& all, size_t frame, const SubtractedFrames& one) {
  const size_t first = frame * one.difference.size();
  const auto copy = [&](const auto& from, auto& to) {
    if (!to.empty())
      std::copy(from.begin(), from.end(), to.begin() + static_cast<ptrdiff_t>(first));
  };
  copy(one.difference, all.difference);
  copy(one.validity, all.validity);
  copy(one.field_px, all.field_px);
  all.figures[frame].field = one.figures[0].field;
  all.figures[frame].subtracted = one.figures[0].subtracted;
}

}  // namespace

DenseBase::DenseBase(const BlockGrid& grid, const Buffer<Vec3i>& vectors, const DsaConfig& config,
                     const Context& context)
    : field_{&grid, vectors.data()} {
  if (!takes_spline(config)) return;
  pixels_ = pixel_grid(grid.image);
  at_pixels_ = spline_field(grid, vectors.to_vector(), config.border_field, context);
  field_ = {&pixels_, at_pixels_.data()};
}

MatchJob job_of(const PassInput& pass, const Buffer<int32_t>& bin_shift) {
  MatchJob job;
  job.config = &pass.config;
  job.grid = &pass.grid;
  job.range = pass.config.range;
  job.mask = pass.mask.samples.data();
  job.mask_at_zero = pass.mask.at_zero.data();
  job.contrast = pass.frames.at_zero.values.data();
  job.frames = pass.frames.at_zero.count;
  job.bin_shift = bin_shift.data();
  return job;
}

bool confirms(const DsaConfig& config, const Vec3i& size) {
  return size.z == 1 && config.outlier_tolerance && config.subpixel == SubPixel::kGain;
}

void confirm_replaced(const PassInput& pass, const Buffer<int32_t>& bin_shift,
                      Buffer<BlockMatch>& matches, const Context& context) {
  std::vector<BlockMatch> found = matches.to_vector();
  const std::vector<uint8_t> is_filled = filled_blocks(found, pass.grid.blocks());
  if (std::none_of(is_filled.begin(), is_filled.end(), [](uint8_t v) { return v != 0; })) return;
  const Buffer<Vec3i> vectors = field_vectors(matches, context);
  const DenseBase dense(pass.grid, vectors, pass.config, context);
  const auto by_field = scores_at(pass, dense.field(), bin_shift, context);
  const auto by_shift = scores_of_shifts(pass, pass.frames.shifts, bin_shift, context);
  const auto terms = entropy_terms(pass.config.metric == Metric::kEntropy ? 65535 : 0);
  const auto blocks = static_cast<size_t>(pass.grid.blocks());
  for (size_t i = 0; i < found.size(); ++i) {
    if (is_filled[i] == 0) continue;
    const Ranking ranking{pass.config.metric, terms.data(), (found[i].counted + 1) / 2};
    if (ranking.is_better(by_shift[i].before, by_field[i].before)) {
      found[i].vector = pass.frames.shifts[i / blocks];
    }
  }
  matches.upload(found);
}

void confirm_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                    SubtractedFrames& frames, std::vector<FrameScores>& scores,
                    const DsaConfig& config, const Context& context) {
  if (frames.matches.empty() || !confirms(config, basis.mask.size)) return;
  Context host = context;
  host.device = Device::cpu();
  const size_t count = scores.size();
  const size_t pixels = stored.size() / count, blocks = frames.matches.size() / count;
  for (size_t f = 0; f < count; ++f) {
    const auto matches = std::span(frames.matches).subspan(f * blocks, blocks);
    const bool has_vectors = std::any_of(matches.begin(), matches.end(), [](const BlockMatch& m) {
      return (m.flags & (kBlockOutside | kBlockUnreliable)) == 0;
    });
    const Correction best = best_correction(scores[f], has_vectors);
    if (best == Correction::kBlocks) continue;
    const Vec3i vector = best == Correction::kShift ? frames.shift[f] : Vec3i{};
    replace_images(frames, f,
                   subtract_moved(basis.mask, stored.subspan(f * pixels, pixels), vector, config,
                                  !frames.field_px.empty(), host));
    frames.figures[f].correction = best;
    for (BlockMatch& match : matches) {
      match.vector = vector;
      match.flags |= kBlockOfFrame;
    }
    std::fill_n(frames.vectors.begin() + static_cast<ptrdiff_t>(f * blocks), blocks, vector);
    scores[f].corrected = best == Correction::kShift ? scores[f].shifted : scores[f].uncorrected;
  }
}

}  // namespace larch::dsa
