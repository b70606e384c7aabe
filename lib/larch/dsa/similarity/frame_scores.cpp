// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/similarity/frame_scores.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/literal_math.h"
#include "larch/dsa/match/match_lanes.h"

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

using cpu::kCounters, cpu::kHistograms, cpu::kLanes, cpu::match_lanes;

/// A row of the mask with room for whole lanes and a sample more at both ends.
using Row = std::vector<uint16_t>;

/// Rows of the mask at a displacement.
class DisplacedRows {
 public:
  explicit DisplacedRows(const FrameScoresJob& job)
      : job_(job),
        taps_(gain_taps()),
        padded_((job.size.x + kLanes - 1) / kLanes * kLanes),
        copy_(static_cast<size_t>(padded_) + 2 * kLanes, kNoSample),
        out_(static_cast<size_t>(padded_), kNoSample) {
    for (Row& row : filtered_) row.assign(static_cast<size_t>(padded_), kNoSample);
  }
  int64_t padded() const { return padded_; }

  const uint16_t* at(const Vec3i& units, int32_t y) {
    if (job_.literal) {
      const LiteralStep step = literal_step(units);
      for (int32_t x = 0; x < job_.size.x; ++x) {
        out_[static_cast<size_t>(x)] = literal_sample(job_.mask, job_.size, {x, y, 0}, step);
      }
      return out_.data();
    }
    if (units.x % kUnit == 0 && units.y % kUnit == 0) {
      return copied(job_.mask_at_zero, units.x / kUnit, y + units.y / kUnit);
    }
    const Step sx = split_step(units.x), sy = split_step(units.y);
    const Taps& tx = taps_.at[sx.fraction + kUnit / 2];
    const Taps& ty = taps_.at[sy.fraction + kUnit / 2];
    for (int j = 0; j < 3; ++j) {
      const uint16_t* here = copied(job_.mask, sx.pixel, y + sy.pixel + j - 1);
      match_lanes().tap_row(tx, here - 1, here, here + 1, padded_, filtered_[j].data());
    }
    match_lanes().tap_row(ty, filtered_[0].data(), filtered_[1].data(), filtered_[2].data(),
                          padded_, out_.data());
    return out_.data();
  }

 private:
  /// Row y of an image, shifted by x, with what lies beyond the image.
  const uint16_t* copied(const uint16_t* image, int32_t x, int32_t y) {
    uint16_t* out = copy_.data() + kLanes;
    if (y < 0 || y >= job_.size.y) {
      std::fill(copy_.begin(), copy_.end(), kNoSample);
      return out;
    }
    const uint16_t* row = image + static_cast<int64_t>(y) * job_.size.x;
    const int32_t width = job_.size.x;
    const int32_t first = std::clamp(-x, -1, width + 1);  // of those from -1 to width in the image
    const int32_t end = std::clamp(width - x, first, width + 1);
    std::fill(out - 1, out + first, kNoSample);
    if (first < end) std::copy(row + (first + x), row + (end + x), out + first);
    std::fill(out + end, out + width + 1, kNoSample);
    return out;
  }

  const FrameScoresJob& job_;
  const TapTable taps_;
  const int64_t padded_;
  Row copy_, filtered_[3], out_;
};

/// Returns the score of one candidate.
Score score_of(const FrameScoresJob& job, int64_t frame, const Vec3i& units, DisplacedRows& rows) {
  std::vector<uint32_t> counts(kHistograms * kCounters, 0);
  std::vector<uint16_t> bins(static_cast<size_t>(rows.padded()));
  Row contrast(static_cast<size_t>(rows.padded()), kNoSample);
  const cpu::BinRule rule{0, job.bin_shift[frame]};
  const uint16_t* pixels = job.contrast + frame * job.size.x * job.size.y;
  for (int32_t y = 0; y < job.size.y; y += job.row_step) {
    std::copy_n(pixels + static_cast<int64_t>(y) * job.size.x, job.size.x, contrast.data());
    match_lanes().bin_row(rule, contrast.data(), rows.at(units, y), rows.padded(), bins.data());
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
  parallel_for(context.threads, job.frames * small.y, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint16_t* frame =
          job.samples + row / small.y * static_cast<int64_t>(job.size.x) * job.size.y;
      for (int32_t x = 0; x < small.x; ++x) {
        job.shrunk[row * small.x + x] =
            shrunk_sample(frame, job.size.x, x, static_cast<int32_t>(row % small.y));
      }
    }
  });
}

void frame_scores(const FrameScoresJob& job, const Context& context) {
  parallel_for(context.threads, job.frames * job.candidates, 8, [&](int64_t begin, int64_t end) {
    DisplacedRows rows(job);
    for (int64_t i = begin; i < end; ++i) {
      job.scores[i] = score_of(job, i / job.candidates, job.displacements[i], rows);
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
