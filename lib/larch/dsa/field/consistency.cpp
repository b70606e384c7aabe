// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/consistency.h"

#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/similarity/difference_math.h"

// All comparisons are of whole numbers and exact.
namespace larch::dsa {
namespace {

/// Vectors shorter than half a pixel have no direction, and count as half a pixel long.
constexpr int64_t kShortVector = int64_t{1} << (kVectorBits - 1);
/// A neighbour whose vector is more than so many times as long or short disagrees.
constexpr int64_t kMostRatio = 2;
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
  const int64_t ratio = kMostRatio * kMostRatio;
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

void replace_inconsistent(const BlockGrid& grid, std::span<BlockMatch> matches,
                          const Context& context) {
  const auto blocks = static_cast<size_t>(grid.blocks());
  if (matches.size() % blocks != 0) {
    throw UsageError("the number of matches is not that of the blocks of all frames");
  }
  const auto frames = static_cast<int64_t>(matches.size() / blocks);
  parallel_for(context.threads, frames, 1, [&](int64_t begin, int64_t end) {
    for (auto f = static_cast<size_t>(begin); f < static_cast<size_t>(end); ++f) {
      replace_in_frame(grid, matches.subspan(f * blocks, blocks));
    }
  });
}

}  // namespace larch::dsa
