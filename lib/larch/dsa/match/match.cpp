// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/match.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/warp_math.h"
#include "larch/dsa/literal.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/block_samples.h"
#include "larch/dsa/sampling/volume_samples.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa::cpu {
namespace {

/// Rounds of conjugate directions at the tenths of volumes, at most.
constexpr int kRounds = 4;

/// The scores of fractions of a pixel that a search has asked for, each evaluated once.
class ScoreLattice {
 public:
  void clear() {
    filled_ = 0;
    std::fill(std::begin(known_), std::end(known_), false);
  }
  /// Makes the points x0..x1, y0..y1 known. `score_at(units)`: the score of a displacement. Columns
  /// come one after the other, since they may share what is filtered along x.
  template <class ScoreAt>
  void fill(const Vec3i& origin, int x0, int y0, int x1, int y1, const ScoreAt& score_at) {
    for (int x = x0; x <= x1; ++x) {
      for (int y = y0; y <= y1; ++y) {
        const size_t place = place_of(x, y);
        if (known_[place]) continue;
        known_[place] = true;
        ++filled_;
        scores_[place] = score_at(origin + Vec3i{x, y, 0} * kTenth);
      }
    }
  }
  /// Of a point that is known.
  const Score& score(int x, int y) const { return scores_[place_of(x, y)]; }
  uint32_t filled() const { return filled_; }

 private:
  static size_t place_of(int x, int y) {
    const int place = (y + kLatticeReach) * kLatticeSide + x + kLatticeReach;
    return static_cast<size_t>(place);
  }

  Score scores_[kLatticeSide * kLatticeSide] = {};
  bool known_[kLatticeSide * kLatticeSide] = {};
  uint32_t filled_ = 0;
};

/// A block that search_block can search; see there. One per thread, for block after block.
///
/// `Samples` are those of a picture (BlockSamples) or of a volume (VolumeSamples). All rows of a
/// block, those of its planes one after the other, are `rows()`.
template <class Samples>
class BlockSearch {
 public:
  BlockSearch(const MatchJob& job, const uint64_t* terms)
      : job_(job), terms_(terms), samples_(job), counters_(kHistograms * kCounters, 0) {}

  BlockMatch search(int64_t frame, int32_t block) {
    samples_.move_to(frame, block);
    BlockMatch out;
    out.counted = samples_.counted();
    SearchPlan plan{{}, job_.range, kIsVolume ? 3 : 2};
    if (job_.centre != nullptr) plan.centre = job_.centre[frame];
    if (int64_t{out.counted} * 4 < samples_.rows() * samples_.block().x) {
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
    out.evaluations = found.evaluations;
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
          if (window.evaluations++ == 0 || wins(next, window.whole, ranking)) window.whole = next;
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

  void fill(const Vec3i& origin, int x0, int y0, int x1, int y1) {
    lattice_.fill(origin, x0, y0, x1, y1, [this](const Vec3i& units) { return one(units); });
  }
  const Score& score(int x, int y) const { return lattice_.score(x, y); }
  int64_t similarity(int x, int y) const { return ranking_.similarity(score(x, y)); }
  uint32_t filled() const { return lattice_.filled(); }

 private:
  static constexpr bool kIsVolume = std::is_same_v<Samples, VolumeSamples>;

  Found find(const SearchPlan& plan) {
    if constexpr (!kIsVolume) {
      lattice_.clear();
      return search_block(*this, plan, ranking_);
    }
    Found found = window(plan, ranking_);
    search_tenths(found, (plan.centre + found.whole.at) * kUnit, plan.axes, kRounds, ranking_,
                  [this](const Vec3i& units) { return one(units); });
    return found;
  }

  /// The bins of all pixels of the block.
  void find_bins(const MaskRows& mask, const BinRule& rule) {
    const int64_t width = samples_.padded_width();
    bins_.resize(static_cast<size_t>(width * samples_.rows()));
    for (int64_t y = 0; y < samples_.rows(); ++y) {
      lanes_.bin_row(rule, samples_.contrast_row(y), mask.rows + y * mask.stride, width,
                     bins_.data() + y * width);
    }
  }

  /// The histogram: kHistograms of them, to be added up.
  void count(const MaskRows& mask, const BinRule& rule) {
    find_bins(mask, rule);
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
  void clear_counters() { std::fill(counters_.begin(), counters_.end(), uint16_t{0}); }

  /// Calls body(difference) for the pixels that count.
  template <class Body>
  void for_differences(const MaskRows& mask, const Body& body) const {
    for (int64_t y = 0; y < samples_.rows(); ++y) {
      const uint16_t* contrast = samples_.contrast_row(y);
      const uint16_t* row = mask.rows + y * mask.stride;
      for (int32_t x = 0; x < samples_.block().x; ++x) {
        if (contrast[x] == kNoSample || row[x] == kNoSample) continue;
        body(int32_t{contrast[x]} - int32_t{row[x]});
      }
    }
  }

  /// Returns the lower median of the differences; 0 where no pixel counts. In two steps, by bins of
  /// 128 and then by single ones within the median's bin.
  int32_t median_difference(const MaskRows& mask) {
    constexpr int32_t kShift = 7, kWide = 1 << kShift;
    count(mask, {kWide / 2, kShift});  // bins begin at multiples of 128, and none wraps
    const auto pixels = static_cast<uint32_t>(bins_.size()) - count_of(kNotCounted);
    uint32_t wanted = (pixels + 1) / 2;
    int32_t bin = 0;
    for (; pixels > 0 && count_of(bin) < wanted; ++bin) wanted -= count_of(bin);
    clear_counters();
    if (pixels == 0) return 0;
    const int32_t first = (bin - kBins / 2) * kWide;
    uint32_t counts[kWide] = {};
    for_differences(mask, [&](int32_t difference) {
      if (difference >= first && difference < first + kWide) ++counts[difference - first];
    });
    int32_t above = 0;
    for (; counts[above] < wanted; ++above) wanted -= counts[above];
    return first + above;
  }

  Score one(const Vec3i& units) {
    count(samples_.mask_at(units), rule_);
    Score score;
    score.count = static_cast<uint32_t>(bins_.size()) - count_of(kNotCounted);
    score.sum = terms_ == nullptr ? lanes_.sum_of_squares(counters_.data()) : sum_of_terms();
    return score;
  }

  uint64_t sum_of_terms() {
    uint64_t sum = 0;
    for (int64_t bin = 0; bin < kBins; ++bin) sum += terms_[count_of(bin)];
    clear_counters();
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
  Samples samples_;
  BinRule rule_{};
  Ranking ranking_{};
  std::vector<uint16_t> bins_{};
  std::vector<uint16_t> counters_;
  std::vector<Score> window_scores_{};
  ScoreLattice lattice_{};
};

/// Searches every block of every frame.
template <class Samples>
void search_blocks(const MatchJob& job, const Context& context) {
  std::vector<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) terms = entropy_terms(kMaximumBlockPixels);
  const int32_t blocks = job.grid->blocks();
  parallel_for(context.threads, job.frames * blocks, 32, [&](int64_t begin, int64_t end) {
    BlockSearch<Samples> search(job, terms.empty() ? nullptr : terms.data());
    for (int64_t i = begin; i < end; ++i) {
      job.out[i] = search.search(i / blocks, static_cast<int32_t>(i % blocks));
    }
  });
}

}  // namespace

void match_blocks(const MatchJob& job, const Context& context) {
  (job.grid->image.z > 1 ? search_blocks<VolumeSamples> : search_blocks<BlockSamples>)(job,
                                                                                       context);
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
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const std::vector<uint32_t> counts = count_differences(job, f);
      const Spread spread = spread_of(counts.data(), static_cast<int32_t>(counts.size()));
      job.shifts[f] = bin_shift_of(spread.deviation, job.least_shift);
    }
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
  const int64_t pixels =
      static_cast<int64_t>(job.grid->block.x) * job.grid->block.y * job.grid->block.z;
  if (pixels > kMaximumBlockPixels) {
    throw UsageError("blocks of " + std::to_string(pixels) + " pixels: at most " +
                     std::to_string(kMaximumBlockPixels) + " are supported");
  }
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
