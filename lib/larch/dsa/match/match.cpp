// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match.h"

#include <algorithm>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/warp_math.h"
#include "larch/dsa/literal.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/block_samples.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa::cpu {
namespace {

/// Rounds of conjugate directions at the tenths of volumes, at most.
constexpr int kRounds = 4;

/// A block that search_block can search; see there. One per thread, for block after block.
class BlockSearch {
 public:
  BlockSearch(const MatchJob& job, const uint64_t* terms)
      : job_(job), terms_(terms), samples_(job), counters_(kHistograms * kCounters, 0) {}

  BlockMatch search(int64_t frame, int32_t block) {
    samples_.move_to(frame, block);
    BlockMatch out;
    out.counted = samples_.counted();
    SearchPlan plan{{}, job_.range, job_.grid->image.z > 1 ? 3 : 2};
    if (job_.centre != nullptr) plan.centre = job_.centre[frame];
    if (int64_t{out.counted} * 4 < samples_.rows() * samples_.width()) {
      out.flags = kBlockOutside;
      out.vector = out.found = samples_.base_at_centre() + q16_of(plan.centre * kUnit);
      return out;
    }
    ranking_ = {job_.config->metric, terms_, (out.counted + 1) / 2};
    rule_ = {0, job_.bin_shift[frame]};
    const MaskRows start = samples_.mask_at(plan.centre * kUnit);
    rule_.mu = rounded_to_bins(median_difference(start), rule_.shift);
    const Found found = find(plan);
    out.vector = out.found = samples_.base_at_centre() + found.vector;
    out.before = found.at_start;
    out.best = one(found.units);
    out.overflow = overflow_at(found.units);
    out.bend = found.bend;
    if (found.at_edge) out.flags |= kBlockAtEdge;
    return out;
  }

  Found window(const SearchPlan& plan, const Ranking& ranking) {
    Found window;
    window_scores_.clear();
    const int32_t depth = plan.axes > 2 ? plan.range : 0;
    for (int32_t z = -depth; z <= depth; ++z) {
      for (int32_t y = -plan.range; y <= plan.range; ++y) {
        for (int32_t x = -plan.range; x <= plan.range; ++x) {
          const Vec3i at{x, y, z};
          const Candidate next{at, one((plan.centre + at) * kUnit)};
          window_scores_.push_back(next.score);
          if (at == Vec3i{}) window.at_start = next.score;
          if (window_scores_.size() == 1 || wins(next, window.whole, ranking)) window.whole = next;
        }
      }
    }
    const int32_t side = 2 * plan.range + 1;
    const auto score_at = [&](const Vec3i& at) {
      const int32_t row = (at.z + depth) * side + at.y + plan.range;
      const int32_t place = row * side + at.x + plan.range;
      return window_scores_[static_cast<size_t>(place)];
    };
    window.bend = bend_of_window(plan, ranking, window.whole, 0, 1, score_at,
                                 [](int64_t sum) { return sum; });
    window.at_edge = is_at_edge(window.whole.at, plan.range);
    return window;
  }

  /// Columns come one after the other, since they may share what is filtered along x.
  void fill(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    for (int x = x0; x <= x1; ++x) {
      for (int y = y0; y <= y1; ++y) {
        if (is_known_[place_of(x, y)]) continue;
        is_known_[place_of(x, y)] = true;
        lattice_[place_of(x, y)] = one(origin + Vec3i{x, y, 0} * kTenth);
      }
    }
  }
  const Score& score(int x, int y) const { return lattice_[place_of(x, y)]; }
  int64_t similarity(int x, int y) const { return ranking_.similarity(score(x, y)); }

 private:
  static size_t place_of(int x, int y) {
    const int place = (y + kLatticeReach) * kLatticeSide + x + kLatticeReach;
    return static_cast<size_t>(place);
  }

  Found find(const SearchPlan& plan) {
    if (plan.axes == 2) {
      std::fill(std::begin(is_known_), std::end(is_known_), false);
      return search_block(*this, plan, ranking_);
    }
    Found found = window(plan, ranking_);
    search_tenths(found, (plan.centre + found.whole.at) * kUnit, plan.axes, kRounds, ranking_,
                  [this](const Vec3i& units) { return one(units); });
    return found;
  }

  /// The histogram: kHistograms of them, to be added up.
  void count(const MaskRows& mask) {
    const int64_t width = samples_.padded_width();
    bins_.resize(static_cast<size_t>(width * samples_.rows()));
    for (int64_t y = 0; y < samples_.rows(); ++y) {
      lanes_.bin_row(rule_, samples_.contrast_row(y), mask.rows + y * mask.stride, width,
                     bins_.data() + y * width);
    }
    uint16_t* a = counters_.data();
    uint16_t* b = a + kCounters;
    uint16_t* c = b + kCounters;
    uint16_t* d = c + kCounters;
    for (const uint16_t* bin = bins_.data(); bin != bins_.data() + bins_.size(); bin += 4) {
      ++a[bin[0]];
      ++b[bin[1]];
      ++c[bin[2]];
      ++d[bin[3]];
    }
  }
  uint32_t count_of(int64_t bin) const {
    uint32_t sum = 0;
    for (int64_t k = 0; k < kHistograms; ++k) {
      sum += counters_[static_cast<size_t>(k * kCounters + bin)];
    }
    return sum;
  }

  /// Calls body(difference) for the pixels that count.
  template <class Body>
  void for_differences(const MaskRows& mask, const Body& body) const {
    for (int64_t y = 0; y < samples_.rows(); ++y) {
      const uint16_t* contrast = samples_.contrast_row(y);
      const uint16_t* row = mask.rows + y * mask.stride;
      for (int32_t x = 0; x < samples_.width(); ++x) {
        if (contrast[x] == kNoSample || row[x] == kNoSample) continue;
        body(int32_t{contrast[x]} - int32_t{row[x]});
      }
    }
  }

  int32_t median_difference(const MaskRows& mask) const {
    std::vector<int32_t> differences;
    for_differences(mask, [&](int32_t difference) { differences.push_back(difference); });
    return lower_median(differences);
  }

  Score one(const Vec3i& units) {
    count(samples_.mask_at(units));
    Score score;
    score.count = static_cast<uint32_t>(bins_.size()) - count_of(kNotCounted);
    score.sum = terms_ == nullptr ? lanes_.sum_of_squares(counters_.data()) : sum_of_terms();
    return score;
  }

  uint64_t sum_of_terms() {
    uint64_t sum = 0;
    for (int64_t bin = 0; bin < kBins; ++bin) sum += terms_[count_of(bin)];
    std::fill(counters_.begin(), counters_.end(), uint16_t{0});
    return sum;
  }

  /// Pixels whose difference is beyond the bins.
  uint32_t overflow_at(const Vec3i& units) {
    uint32_t beyond = 0;
    for_differences(samples_.mask_at(units), [&](int32_t difference) {
      beyond += is_overflow(bin_number(difference, rule_.mu, rule_.shift)) ? 1 : 0;
    });
    return beyond;
  }

  const MatchJob& job_;
  const MatchLanes& lanes_ = match_lanes();
  const uint64_t* terms_;  // null: EHD
  BlockSamples samples_;
  BinRule rule_{};
  Ranking ranking_{};
  std::vector<uint16_t> bins_{};
  std::vector<uint16_t> counters_;
  std::vector<Score> window_scores_{};
  // Scores of fractions of a pixel, each evaluated once.
  Score lattice_[kLatticeSide * kLatticeSide] = {};
  bool is_known_[kLatticeSide * kLatticeSide] = {};
};

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  std::vector<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) terms = entropy_terms(kMaximumBlockPixels);
  const int32_t blocks = job.grid->blocks();
  parallel_for(context.threads, job.frames * blocks, 32, [&](int64_t begin, int64_t end) {
    BlockSearch search(job, terms.empty() ? nullptr : terms.data());
    for (int64_t i = begin; i < end; ++i) {
      job.out[i] = search.search(i / blocks, static_cast<int32_t>(i % blocks));
    }
  });
}

}  // namespace larch::dsa::cpu

namespace larch::dsa {
namespace {

constexpr int32_t kMaximumDifference = 65535;

/// Pixels by contrast - mask + kMaximumDifference.
std::vector<uint32_t> count_differences(const BinShiftJob& job, int64_t frame) {
  std::vector<uint32_t> counts(2 * kMaximumDifference + 1, 0);
  const Vec3i& size = job.size;
  const Vec3i centre = job.centre == nullptr ? Vec3i{} : job.centre[frame];
  const uint16_t* contrast = job.contrast + frame * static_cast<int64_t>(size.x) * size.y * size.z;
  for (int32_t z = std::max(0, -centre.z); z < std::min(size.z, size.z - centre.z); ++z) {
    for (int32_t y = std::max(0, -centre.y); y < std::min(size.y, size.y - centre.y); ++y) {
      const auto row_of = [&](int32_t k, int32_t j) {
        return (static_cast<int64_t>(k) * size.y + j) * size.x;
      };
      const uint16_t* here = contrast + row_of(z, y);
      const uint16_t* there = job.mask_at_zero + row_of(z + centre.z, y + centre.y) + centre.x;
      for (int32_t x = std::max(0, -centre.x); x < std::min(size.x, size.x - centre.x); ++x) {
        if (here[x] == kNoSample || there[x] == kNoSample) continue;
        const int32_t place = int32_t{here[x]} - int32_t{there[x]} + kMaximumDifference;
        ++counts[static_cast<size_t>(place)];
      }
    }
  }
  return counts;
}

}  // namespace

namespace cpu {

void bin_shifts(const BinShiftJob& job, const Context& context) {
  parallel_for_each(context.threads, job.frames, 1, [&](int64_t f) {
    const std::vector<uint32_t> counts = count_differences(job, f);
    const Spread spread = spread_of(counts.data(), static_cast<int32_t>(counts.size()));
    job.shifts[f] = bin_shift_of(spread.deviation, job.least_shift);
  });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const MatchJob&, const Context&)> kMatchBlocks{
    "dsa::match_blocks", cpu::match_blocks, LARCH_CUDA_FN(cuda::match_blocks)};
constexpr Dispatch<void(const BinShiftJob&, const Context&)> kBinShifts{
    "dsa::bin_shifts", cpu::bin_shifts, LARCH_CUDA_FN(cuda::bin_shifts)};

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  if (job.config->literal) return match_literally(job, context);
  kMatchBlocks(context.device, job, context);
}

Buffer<int32_t> bin_shifts(const SampleFrames& contrast, const uint16_t* mask_at_zero,
                           const Vec3i* centre, const SampleTable& table, const DsaConfig& config,
                           const Context& context) {
  if (config.literal) {
    const std::vector<int32_t> all(static_cast<size_t>(contrast.count), table.fraction_bits);
    return Buffer<int32_t>(context.device, all);
  }
  Buffer<int32_t> shifts(context.device, static_cast<size_t>(contrast.count));
  BinShiftJob job;
  job.mask_at_zero = mask_at_zero;
  job.contrast = contrast.values.data();
  job.size = contrast.size;
  job.frames = contrast.count;
  job.centre = centre;
  job.least_shift = table.bits <= 8 && !table.is_log ? 0 : table.fraction_bits;
  job.shifts = shifts.data();
  kBinShifts(context.device, job, context);
  return shifts;
}

}  // namespace larch::dsa
