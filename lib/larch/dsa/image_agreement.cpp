// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/image_agreement.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/dsa/field/field.h"

namespace larch::dsa {
namespace {

constexpr int32_t kMaximumDifference = 65535;

/// The histogram of one image's differences, bins on both sides of 0.
class Differences {
 public:
  explicit Differences(int32_t shift)
      : shift_(shift), counts_((2 * kMaximumDifference >> shift) + 3, 0) {}
  void add(int32_t difference) {
    ++total_;
    ++counts_[static_cast<size_t>(bin_number(difference + kMaximumDifference, 0, shift_))];
  }
  void write_to(ImageScores& out) const {
    out.ehd = out.entropy = std::nan("");
    if (total_ == 0) return;
    double squares = 0, logs = 0;
    for (const uint32_t h : counts_) {
      squares += static_cast<double>(h) * h;
      if (h > 1) logs += h * std::log(static_cast<double>(h));
    }
    const auto n = static_cast<double>(total_);
    out.ehd = squares / (n * n);
    out.entropy = std::log(n) - logs / n;
  }

 private:
  int32_t shift_;
  int64_t total_ = 0;
  std::vector<uint32_t> counts_;
};

/// Samples around a mask that do not count: what lies beyond it is sampled there.
constexpr int32_t kAround = 2;

/// Rows of the mask where it lies in one of the images of a frame.
class PlacedRows {
 public:
  /// `mask`: with kAround samples before it and more behind it; `size`: without them;
  /// `is_constant`: the field is the same for all pixels.
  PlacedRows(const cpu::WarpPart& mask, const Vec3i& size, const FieldView& field, bool is_constant)
      : mask_(mask),
        size_(size),
        field_(field),
        is_constant_(is_constant),
        x_units_(static_cast<size_t>(cpu::whole_lanes(size.x)), kAround * kUnit),
        y_units_(x_units_),
        samples_(x_units_.size()) {}

  /// The samples of a row, kNoSample where there are none; valid until the next call, which is for
  /// the next row.
  const uint16_t* at(int32_t y) {
    const auto inside = [](int32_t at, int32_t count) {
      return std::clamp(at, -kUnit, count * kUnit) + kAround * kUnit;
    };
    if (is_constant_ ? y == 0 : y % kRows == 0) {
      find_field_in_box(field_, {0, y, 0}, {size_.x, std::min(kRows, size_.y - y), 1}, moved_);
    }
    const Vec3i* moved = moved_.data() + (is_constant_ ? 0 : y % kRows * size_.x);
    if (is_constant_ && y > 0) {
      std::fill(y_units_.begin(), y_units_.end(), inside(y * kUnit + moved->y, size_.y));
    } else {
      for (int32_t x = 0; x < size_.x; ++x) {
        const auto i = static_cast<size_t>(x);
        x_units_[i] = inside(x * kUnit + moved[x].x, size_.x);
        y_units_[i] = inside(y * kUnit + moved[x].y, size_.y);
      }
    }
    cpu::match_lanes().warp_row(mask_, {}, x_units_.data(), y_units_.data(),
                                static_cast<int64_t>(samples_.size()), samples_.data());
    return samples_.data();
  }

 private:
  static constexpr int32_t kRows = 8;  // whose field is found at once

  const cpu::WarpPart mask_;
  const Vec3i size_;
  const FieldView field_;
  const bool is_constant_;
  std::vector<Vec3i> moved_{};
  std::vector<int32_t> x_units_, y_units_;
  std::vector<uint16_t> samples_;
};

}  // namespace

ImageAgreement::ImageAgreement(const ScoreBasis& basis, std::span<const uint16_t> stored,
                               std::span<const Vec3i> shifts, std::span<const Vec3i> vectors,
                               const DsaConfig& config, const Context& context)
    : mask_(basis.mask), stored_(stored), shifts_(shifts), config_(config) {
  Context host = context;
  host.device = Device::cpu();
  corrected_ = dense_vectors(correction_grid(config, mask_.size), vectors, config, host);
  const Vec3i& size = mask_.size;
  around_.take(mask_.samples.data(), size, {-kAround, -kAround, 0}, size.x + kAround + 3,
               size.y + kAround + 3);
}

void ImageAgreement::measure(size_t frame, FrameScores& out) const {
  const Vec3i& size = mask_.size;
  const size_t pixels = mask_.samples.size();
  const Context here_alone;
  const Buffer<uint16_t> stored(Device::cpu(), stored_.subspan(frame * pixels, pixels));
  const SampleFrames filtered = filter_at_zero(
      to_samples(stored, size, mask_.table, mask_.region, here_alone), {}, here_alone);
  const int32_t shift =
      bin_shifts(filtered, mask_.at_zero.data(), nullptr, mask_.table, config_, here_alone)
          .to_vector()
          .front();
  const TapTable taps = gain_taps();
  const FieldGrid whole = make_field_grid(make_block_grid(size, size, size), Device::cpu());
  const FieldGrid blocks = make_field_grid(corrected_.grid, Device::cpu());
  const Vec3i* vectors = corrected_.vectors.data();
  if (vectors != nullptr) vectors += frame * static_cast<size_t>(corrected_.grid.blocks());
  std::vector<PlacedRows> masks;
  for (const FieldView& field :
       {whole.view(nullptr, BorderField::kClamp), whole.view(&shifts_[frame], BorderField::kClamp),
        blocks.view(vectors, border_field_of(config_, /*is_volume=*/false))}) {
    masks.push_back({{around_.at(0, 0), around_.stride(), taps.at},
                     size,
                     field,
                     /*is_constant=*/masks.size() < 2});
  }
  std::vector<Differences> differences(3, Differences(shift));
  const uint16_t* contrast = filtered.values.data();
  for (int32_t y = 0; y < size.y; ++y, contrast += size.x) {
    const std::array<const uint16_t*, 3> there{masks[0].at(y), masks[1].at(y), masks[2].at(y)};
    for (int32_t x = 0; x < size.x; ++x) {
      const int32_t here = contrast[x];
      const auto is_missing = [x](const uint16_t* row) { return row[x] == kNoSample; };
      if (here == kNoSample || std::any_of(there.begin(), there.end(), is_missing)) continue;
      for (size_t i = 0; i < 3; ++i) differences[i].add(here - there[i][x]);
    }
  }
  differences[0].write_to(out.uncorrected);
  differences[1].write_to(out.shifted);
  differences[2].write_to(out.corrected);
}

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
  parallel_for_each(context.threads, static_cast<int64_t>(scores.size()), 1,
                    [&](size_t f) { confirm_frame(basis, stored, frames, f, scores, config); });
}

}  // namespace larch::dsa
