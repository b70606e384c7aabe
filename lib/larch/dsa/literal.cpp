// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/literal.h"

#include <algorithm>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/literal_math.h"
#include "larch/dsa/similarity/frame_scores.h"

// Written to be read beside the patent, and what faster searches are compared with in tests. All
// comparisons are of whole numbers and exact.
namespace larch::dsa {
namespace {

/// One block of a frame, as match_literally asks for it.
class LiteralBlock {
 public:
  LiteralBlock(const MatchJob& job, const uint64_t* terms, int64_t frame, int32_t block)
      : job_(job),
        terms_(terms),
        shift_(job.bin_shift[frame]),
        size_(job.grid->image),
        start_(job.grid->start(block)) {
    contrast_ = job.contrast + frame * static_cast<int64_t>(size_.x) * size_.y * size_.z;
  }

  uint32_t count_contrast() const {
    uint32_t count = 0;
    for_pixels([&](const Vec3i&, uint16_t) { ++count; });
    return count;
  }

  int32_t median_at(const Vec3i& units) const {
    std::vector<int32_t> differences;
    for_differences(units, [&](int32_t difference) { differences.push_back(difference); });
    return lower_median(differences);
  }

  /// Ibid., 0057 to 0061: the histogram of differences, and its energy or entropy.
  Score score_at(const Vec3i& units, int32_t mu) const {
    std::vector<uint32_t> histogram(kBins, 0);
    Score score;
    for_differences(units, [&](int32_t difference) {
      ++histogram[static_cast<size_t>(clamped_bin(bin_number(difference, mu, shift_)))];
      ++score.count;
    });
    for (const uint32_t h : histogram) score.sum += terms_ ? terms_[h] : uint64_t{h} * h;
    return score;
  }

  uint32_t beyond_at(const Vec3i& units, int32_t mu) const {
    uint32_t beyond = 0;
    for_differences(units, [&](int32_t difference) {
      beyond += is_overflow(bin_number(difference, mu, shift_)) ? 1 : 0;
    });
    return beyond;
  }

 private:
  /// Calls body(place, contrast) for the contrast pixels that count.
  template <class Body>
  void for_pixels(const Body& body) const {
    const Vec3i end = start_ + job_.grid->block;
    for (int32_t z = start_.z; z < end.z; ++z) {
      for (int32_t y = start_.y; y < end.y; ++y) {
        const uint16_t* row = contrast_ + (static_cast<int64_t>(z) * size_.y + y) * size_.x;
        for (int32_t x = start_.x; x < end.x; ++x) {
          if (row[x] != kNoSample) body(Vec3i{x, y, z}, row[x]);
        }
      }
    }
  }
  /// Calls body(difference) where contrast and displaced mask count.
  template <class Body>
  void for_differences(const Vec3i& units, const Body& body) const {
    const LiteralStep step = literal_step(units);
    for_pixels([&](const Vec3i& at, uint16_t contrast) {
      const uint16_t mask = literal_sample(job_.mask, size_, at, step);
      if (mask != kNoSample) body(int32_t{contrast} - int32_t{mask});
    });
  }

  const MatchJob& job_;
  const uint64_t* terms_;  // null: EHD
  const int32_t shift_;
  const Vec3i size_, start_;
  const uint16_t* contrast_ = nullptr;
};

/// Vectors shorter than half a pixel have no direction, and count as half a pixel long.
constexpr int64_t kShortVector = int64_t{1} << (kVectorBits - 1);
/// A neighbour whose vector is more than so many times as long or short disagrees.
constexpr int64_t kMaximumRatio = 2;
/// The round from which on the vector of a block can be used: 0 if it is consistent.
constexpr int32_t kNever = INT32_MAX;

/// Calls visit(block) for the neighbours that exist.
template <class Visit>
void for_neighbours(const BlockGrid& grid, int32_t block, Visit&& visit) {
  const Vec3i& n = grid.count;
  const Vec3i at = grid.at(block);
  for (int32_t k = -1; k <= 1; ++k) {
    for (int32_t j = -1; j <= 1; ++j) {
      for (int32_t i = -1; i <= 1; ++i) {
        const Vec3i to = at + Vec3i{i, j, k};
        const bool exists = to.x >= 0 && to.y >= 0 && to.z >= 0 && to.x < n.x && to.y < n.y &&
                            to.z < n.z && to != at;
        const int32_t neighbour = (to.z * n.y + to.y) * n.x + to.x;
        if (exists) visit(static_cast<size_t>(neighbour));
      }
    }
  }
}

/// Lengths and angles of Q16 vectors: components of at most 2^23 keep squares below 2^48.
int64_t dot_q32(const Vec3i& a, const Vec3i& b) {
  return dot(a.cast<int64_t>(), b.cast<int64_t>());
}

/// The two criteria of ibid., 0079: the ratio of lengths, and the angle, more than 60 degrees.
bool contradict(const Vec3i& a, const Vec3i& b) {
  const int64_t least = kShortVector * kShortVector;
  const int64_t aa = dot_q32(a, a), bb = dot_q32(b, b);
  const int64_t la = std::max(aa, least), lb = std::max(bb, least);
  const int64_t ratio = kMaximumRatio * kMaximumRatio;
  if (la > ratio * lb || lb > ratio * la) return true;
  if (aa < least || bb < least) return false;
  const int64_t ab = dot_q32(a, b);
  return ab <= 0 || 4 * static_cast<SignedWide>(ab) * ab < static_cast<SignedWide>(aa) * bb;
}

/// More than half of the neighbours that were searched disagree.
bool contradicts_neighbours(const BlockGrid& grid, std::span<const BlockMatch> frame,
                            int32_t block) {
  int disagree = 0, count = 0;
  for_neighbours(grid, block, [&](size_t neighbour) {
    if ((frame[neighbour].flags & kBlockOutside) != 0) return;
    ++count;
    disagree += contradict(frame[static_cast<size_t>(block)].vector, frame[neighbour].vector);
  });
  return disagree * 2 > count;
}

/// If neighbours of a block have had a vector before `round`, it becomes their mean, rounded,
/// halves up; blocks of the same round do not see each other.
bool fill_from_neighbours(const BlockGrid& grid, std::span<BlockMatch> frame, int32_t block,
                          std::span<int32_t> known_since, int32_t round) {
  Vec3l sum{};
  int64_t count = 0;
  for_neighbours(grid, block, [&](size_t neighbour) {
    if (known_since[neighbour] >= round) return;
    ++count;
    sum += frame[neighbour].vector.cast<int64_t>();
  });
  if (count == 0) return false;
  for (int axis = 0; axis < 3; ++axis) {
    frame[static_cast<size_t>(block)].vector[axis] =
        static_cast<int32_t>(floor_quotient(2 * sum[axis] + count, 2 * count));
  }
  known_since[static_cast<size_t>(block)] = round;
  return true;
}

void replace_in_frame(const BlockGrid& grid, std::span<BlockMatch> frame) {
  std::vector<int32_t> known_since(frame.size(), 0);
  for (int32_t i = 0; i < grid.blocks(); ++i) {
    BlockMatch& match = frame[static_cast<size_t>(i)];
    const bool is_outside = (match.flags & kBlockOutside) != 0;
    if (!is_outside && !contradicts_neighbours(grid, frame, i)) continue;
    known_since[static_cast<size_t>(i)] = kNever;
    match.flags |= kBlockReplaced;
  }
  bool has_filled = true;
  for (int32_t round = 1; has_filled; ++round) {
    has_filled = false;
    for (int32_t i = 0; i < grid.blocks(); ++i) {
      if (known_since[static_cast<size_t>(i)] != kNever) continue;
      has_filled |= fill_from_neighbours(grid, frame, i, known_since, round);
    }
  }
  for (size_t i = 0; i < frame.size(); ++i) {
    if (known_since[i] == kNever) frame[i].vector = {};
  }
}

}  // namespace

namespace cpu {

void match_literally(const MatchJob& job, const Context& context) {
  std::vector<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) terms = entropy_terms(kMaximumBlockPixels);
  const BlockGrid& grid = *job.grid;
  const int64_t blocks = grid.blocks();
  const int64_t pixels = static_cast<int64_t>(grid.block.x) * grid.block.y * grid.block.z;
  parallel_for_each(context.threads, job.frames * blocks, 1, [&](int64_t i) {
    const int64_t frame = i / blocks;
    const uint64_t* sums = terms.empty() ? nullptr : terms.data();
    const LiteralBlock block(job, sums, frame, static_cast<int32_t>(i % blocks));
    job.out[i] = dsa::match_literally(block, pixels, job.centre ? job.centre[frame] : Vec3i{},
                                      grid.image.z > 1 ? 3 : 2, job.range, job.bin_shift[frame],
                                      Ranking{job.config->metric, sums});
  });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const MatchJob&, const Context&)> kMatchLiterally{
    "dsa::match_literally", cpu::match_literally, LARCH_CUDA_FN(cuda::match_literally)};

}  // namespace

void match_literally(const MatchJob& job, const Context& context) {
  kMatchLiterally(context.device, job, context);
}

void replace_inconsistent(const BlockGrid& grid, std::span<BlockMatch> matches,
                          const Context& context) {
  const auto blocks = static_cast<size_t>(grid.blocks());
  const auto frames = static_cast<int64_t>(matches.size() / blocks);
  parallel_for_each(context.threads, frames, 1,
                    [&](size_t f) { replace_in_frame(grid, matches.subspan(f * blocks, blocks)); });
}

}  // namespace larch::dsa
