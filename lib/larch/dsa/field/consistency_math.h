// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/dsa/field/consistency.h"

// Which vectors contradict their neighbours, and what replaces them: US 2008/0037845, 0078 and
// 0079. All comparisons are of whole numbers and exact.
namespace larch::dsa {

/// Vectors shorter than half a pixel have no direction, and count as half a pixel long.
constexpr int64_t kShortVector = int64_t{1} << (kVectorBits - 1);
/// A neighbour whose vector is more than so many times as long or short disagrees,
constexpr int64_t kMostRatio = 2;
/// and differences are tolerated up to half a pixel, or one pixel in 25 of the distance between the
/// two centres: motion that changes as smoothly as that is true.
constexpr int64_t kToleranceDistance = 25;
/// A block whose vector cannot be used yet.
constexpr int32_t kUnknownVector = INT32_MAX;

/// The blocks of a frame. `known_since` says from which round on the vector of a block can be used
/// by its neighbours: 0 if it was found and is consistent.
struct Neighbourhood {
  FieldAxis axes[3]{};
  BlockMatch* matches = nullptr;
  int32_t* known_since = nullptr;
  bool tolerates = true;
  bool drops_unreliable = true;  ///< vectors of unreliable blocks are not used

  LARCH_HD int64_t place(const Vec3i& at) const {
    return (static_cast<int64_t>(at.z) * axes[1].count + at.y) * axes[0].count + at.x;
  }
  LARCH_HD int64_t blocks() const {
    return static_cast<int64_t>(axes[0].count) * axes[1].count * axes[2].count;
  }
  LARCH_HD Vec3i at(int64_t place) const {
    const int64_t row = place / axes[0].count;
    return {static_cast<int32_t>(place % axes[0].count), static_cast<int32_t>(row % axes[1].count),
            static_cast<int32_t>(row / axes[1].count)};
  }
};

/// Whether the vector that was found for a block can be used.
LARCH_HD bool is_usable(const Neighbourhood& blocks, int64_t place) {
  const uint32_t unusable = blocks.drops_unreliable ? kBlockOutside | kBlockUnreliable
                                                    : static_cast<uint32_t>(kBlockOutside);
  return (blocks.matches[place].flags & unusable) == 0;
}

/// Calls visit(place, at) for the neighbours that exist.
template <class Visit>
LARCH_HD void for_neighbours(const Neighbourhood& blocks, const Vec3i& at, Visit&& visit) {
  for (int32_t k = -1; k <= 1; ++k) {
    for (int32_t j = -1; j <= 1; ++j) {
      for (int32_t i = -1; i <= 1; ++i) {
        const Vec3i n = at + Vec3i{i, j, k};
        const bool exists = n.x >= 0 && n.y >= 0 && n.z >= 0 && n.x < blocks.axes[0].count &&
                            n.y < blocks.axes[1].count && n.z < blocks.axes[2].count;
        if (exists && n != at) visit(blocks.place(n), n);
      }
    }
  }
}

/// Lengths and angles of Q16 vectors: components of at most 2^23 keep squares below 2^48.
LARCH_HD int64_t dot_q32(const Vec3i& a, const Vec3i& b) {
  return static_cast<int64_t>(a.x) * b.x + static_cast<int64_t>(a.y) * b.y +
         static_cast<int64_t>(a.z) * b.z;
}

/// Whether two vectors differ by more than is tolerated; `twice_apart`: twice the distance between
/// their centres along each axis, pixels.
LARCH_HD bool differ_notably(const Vec3i& a, const Vec3i& b, const Vec3i& twice_apart) {
  const Vec3i d = a - b;
  const int64_t square = dot_q32(d, d);
  const int64_t by_distance = dot_q32(twice_apart, twice_apart) << (2 * kVectorBits);
  return square > kShortVector * kShortVector &&
         square * 4 * kToleranceDistance * kToleranceDistance > by_distance;
}

/// The two criteria of ibid., 0079: the ratio of lengths, and the angle, more than 60 degrees.
LARCH_HD bool contradict(const Vec3i& a, const Vec3i& b) {
  const int64_t least = kShortVector * kShortVector;
  const int64_t aa = dot_q32(a, a), bb = dot_q32(b, b);
  const int64_t la = aa > least ? aa : least, lb = bb > least ? bb : least;
  const int64_t ratio = kMostRatio * kMostRatio;
  if (la > ratio * lb || lb > ratio * la) return true;
  if (aa < least || bb < least) return false;
  const int64_t ab = dot_q32(a, b);
  return ab <= 0 || 4 * static_cast<SignedWide>(ab) * ab < static_cast<SignedWide>(aa) * bb;
}

/// The seed's rule: more than half of the neighbours that were found disagree.
LARCH_HD bool contradicts_neighbours(const Neighbourhood& blocks, const Vec3i& at) {
  const Vec3i v = blocks.matches[blocks.place(at)].vector;
  int disagree = 0, count = 0;
  for_neighbours(blocks, at, [&](int64_t place, const Vec3i& n) {
    if (blocks.known_since[place] != 0) return;
    ++count;
    const Vec3i& other = blocks.matches[place].vector;
    Vec3i twice_apart;
    for (int axis = 0; axis < 3; ++axis) {
      twice_apart[axis] =
          blocks.axes[axis].twice_centre(n[axis]) - blocks.axes[axis].twice_centre(at[axis]);
    }
    const bool is_notable = !blocks.tolerates || differ_notably(v, other, twice_apart);
    if (is_notable && contradict(v, other)) ++disagree;
  });
  return disagree * 2 > count;
}

/// Whether a vector stands alone: so many neighbours were searched, and not one of them has a
/// reliable vector. Where texture fails all around, one block that found something is chance more
/// often than not, and it would fill all the others. Blocks outside of the region do not count: the
/// only block of a region is nobody's neighbour.
constexpr int kLeastSearched = 3;
LARCH_HD bool stands_alone(const Neighbourhood& blocks, const Vec3i& at) {
  int searched = 0, reliable = 0;
  for_neighbours(blocks, at, [&](int64_t place, const Vec3i&) {
    if ((blocks.matches[place].flags & kBlockOutside) == 0) ++searched;
    if (blocks.known_since[place] == 0) ++reliable;
  });
  return searched >= kLeastSearched && reliable == 0;
}

LARCH_HD bool is_outlier(const Neighbourhood& blocks, const Vec3i& at) {
  return stands_alone(blocks, at) || contradicts_neighbours(blocks, at);
}

/// First: all blocks.
LARCH_HD void begin_judging(const Neighbourhood& blocks, int64_t place) {
  blocks.known_since[place] = is_usable(blocks, place) ? 0 : kUnknownVector;
}
/// Then, after all have begun: marks outliers, and changes nothing that others are judged by.
LARCH_HD void judge(const Neighbourhood& blocks, int64_t place) {
  const bool is_flagged = blocks.known_since[place] == 0 && is_outlier(blocks, blocks.at(place));
  blocks.matches[place].mark = is_flagged ? 1 : 0;
}
/// Then, after all were judged. Gives whether the block has to be filled.
LARCH_HD bool end_judging(const Neighbourhood& blocks, int64_t place) {
  if (blocks.matches[place].mark != 0) blocks.known_since[place] = kUnknownVector;
  blocks.matches[place].mark = 0;
  return blocks.known_since[place] == kUnknownVector;
}

/// If a block has no vector and neighbours have had one before `round`, it becomes their mean,
/// rounded, halves up. Rounds count from 1; blocks of the same round do not see each other,
/// whatever their order. Gives whether the block was filled.
LARCH_HD bool fill_from_neighbours(const Neighbourhood& blocks, int64_t place, int32_t round) {
  if (blocks.known_since[place] != kUnknownVector) return false;
  int64_t sum[3] = {};
  int64_t count = 0;
  for_neighbours(blocks, blocks.at(place), [&](int64_t neighbour, const Vec3i&) {
    if (blocks.known_since[neighbour] >= round) return;
    ++count;
    for (int axis = 0; axis < 3; ++axis) sum[axis] += blocks.matches[neighbour].vector[axis];
  });
  if (count == 0) return false;
  for (int axis = 0; axis < 3; ++axis) {
    blocks.matches[place].vector[axis] =
        static_cast<int32_t>(floor_quotient(2 * sum[axis] + count, 2 * count));
  }
  blocks.matches[place].flags |= kBlockReplaced;
  blocks.known_since[place] = round;
  return true;
}

/// Where no round reaches a block, none of its frame has a vector that can be used.
LARCH_HD void fill_with_zero(const Neighbourhood& blocks, int64_t place) {
  if (blocks.known_since[place] != kUnknownVector) return;
  blocks.matches[place].vector = {};
  blocks.matches[place].flags |= kBlockReplaced;
}

}  // namespace larch::dsa
