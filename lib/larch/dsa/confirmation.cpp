// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/confirmation.h"

#include <algorithm>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/dsa/image_agreement.h"
#include "larch/dsa/registration.h"

namespace larch::dsa {
namespace {

/// Tells whether best_correction() reads EHD.
bool asks_for_ehd(const FrameScores& scores, bool has_vectors) {
  const double shift = scores.shifted.rms;
  return shift < scores.uncorrected.rms && !(has_vectors && scores.corrected.rms <= shift);
}

/// Chooses the correction of a frame that its scores favour. EHD is compared under the same noise;
/// differences are not: a mask that is sampled between pixels has less noise, so that any shift
/// seems to help.
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

void confirm_frame(const ScoreBasis& basis, std::span<const uint16_t> all_stored,
                   SubtractedFrames& frames, size_t f, std::vector<FrameScores>& all_scores,
                   DsaConfig config) {
  const Context here_alone;
  FrameScores& scores = all_scores[f];
  const size_t count = all_scores.size();
  const size_t pixels = all_stored.size() / count, blocks = frames.matches.size() / count;
  const auto stored = all_stored.subspan(f * pixels, pixels);
  const auto matches = std::span(frames.matches).subspan(f * blocks, blocks);
  const auto vectors = std::span(frames.vectors).subspan(f * blocks, blocks);
  const bool has_vectors = std::any_of(matches.begin(), matches.end(), [](const BlockMatch& m) {
    return (m.flags & (kBlockOutside | kBlockUnreliable)) == 0;
  });
  if (basis.kind == ScoreKind::kSpread && asks_for_ehd(scores, has_vectors)) {
    const auto shift = std::span(frames.shift).subspan(f, 1);
    ImageAgreement(basis, stored, shift, vectors, config, here_alone).measure(0, scores);
  }
  const Correction best = best_correction(scores, has_vectors);
  if (best == Correction::kBlocks) return;
  const Vec3i vector = best == Correction::kShift ? frames.shift[f] : Vec3i{};
  config.method = Method::kNone;
  const SequenceWants wants{.field = !frames.field_px.empty(), .shift = false, .moved_by = vector};
  replace_images(frames, f, subtract_frames(basis.mask, stored, config, wants, here_alone));
  frames.figures[f].correction = best;
  for (BlockMatch& match : matches) {
    match.vector = vector;
    match.flags |= kBlockOfFrame;
  }
  std::fill(vectors.begin(), vectors.end(), vector);
  scores.corrected = best == Correction::kShift ? scores.shifted : scores.uncorrected;
}

}  // namespace

bool confirms(const DsaConfig& config, const Vec3i& size) {
  return size.z == 1 && !config.literal;
}

void confirm_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                    SubtractedFrames& frames, std::vector<FrameScores>& scores,
                    const DsaConfig& config, const Context& context) {
  if (frames.matches.empty() || !confirms(config, basis.mask.size)) return;
  parallel_for(context.threads, static_cast<int64_t>(scores.size()), 1,
               [&](int64_t begin, int64_t end) {
                 for (auto f = static_cast<size_t>(begin); f < static_cast<size_t>(end); ++f) {
                   confirm_frame(basis, stored, frames, f, scores, config);
                 }
               });
}

}  // namespace larch::dsa
