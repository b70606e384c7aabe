// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/levelset/brick_rows.h"
#include "larch/levelset/speed/regions.h"

namespace larch::levelset::cpu {
namespace {

/// A set of voxels.
using Words = std::vector<uint32_t, Unfilled<uint32_t>>;

/// Calls body(first word, y, z) for each row of an image, on several threads.
template <class Body>
void for_bit_rows(const BitRows& rows, int threads, const Body& body) {
  parallel_for(threads, rows.rows(), fair_grain(threads, rows.rows(), 64),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   body(row * rows.words_per_row, static_cast<int32_t>(row % rows.size.y),
                        static_cast<int32_t>(row / rows.size.y));
                 }
               });
}

/// The voxels of a row of a brick that are inside, of the first `count`.
uint32_t inside_of_row(const float* phi, int32_t count) {
  uint32_t bits = 0;
  for (int32_t x = 0; x < kBrick; ++x) bits |= phi[x] < 0 ? 1U << x : 0U;
  return bits & low_bits(count);
}

void find_inside(const Regions& regions, const BitRows& rows, int threads, Words& inside) {
  const BrickLayout& layout = regions.layout;
  for_brick_rows(layout, threads, [&](Vec3i first) {
    const auto word = [&](int32_t y, int32_t z) {
      const int64_t row = y + int64_t{rows.size.y} * z;
      return inside.data() + row * rows.words_per_row + first.x / kWordVoxels;
    };
    for (; first.x < rows.size.x; first.x += kBrick) {
      const float* brick = regions.phi + layout.offset(first);
      const int32_t place = first.x % kWordVoxels, count = rows.size.x - first.x;
      for_rows_of_bricks(layout, first, [&](int32_t y, int32_t z) {
        const float* row = brick + BrickLayout::offset_in_brick(0, y - first.y, z - first.z);
        uint32_t& bits = *word(y, z);
        bits = (place == 0 ? 0U : bits) | inside_of_row(row, count) << place;
      });
    }
  });
}

/// The voxels near to one of `set`.
Words widened(const BitRows& rows, const Vec3i& reach, int threads, const Words& set) {
  Words narrow(set.size()), wide(set.size());
  const int64_t per_row = rows.words_per_row, per_slice = per_row * rows.size.y;
  for_bit_rows(rows, threads, [&](int64_t first, int32_t /*y*/, int32_t /*z*/) {
    for (int32_t w = 0; w < rows.words_per_row; ++w) {
      wide[static_cast<size_t>(first + w)] =
          widened_along_row(set.data() + first, rows.words_per_row, w, reach.x);
    }
  });
  for (int axis = 1; axis < 3; ++axis) {
    std::swap(narrow, wide);
    const int64_t stride = axis == 1 ? per_row : per_slice;
    for_bit_rows(rows, threads, [&](int64_t first, int32_t y, int32_t z) {
      const int32_t at = axis == 1 ? y : z;
      const uint32_t* column = narrow.data() + first - at * stride;
      for (int32_t w = 0; w < rows.words_per_row; ++w) {
        wide[static_cast<size_t>(first + w)] =
            widened_along_column(column + w, stride, rows.size[axis], at, reach[axis]);
      }
    });
  }
  return wide;
}

/// What voxels of a row that lie in a word add to sums.
class WordSums {
 public:
  explicit WordSums(const Regions& regions) : regions_(regions) {}

  RegionSums sums{};

  /// `from`: index of the first of `count` voxels in the image; `near`: those that may count.
  void add(int64_t from, int32_t count, uint32_t near, uint32_t inside) {
    if (near == 0) return;
    const float* intensities = regions_.intensities + from;
    uint32_t counts = 0;
    for (int32_t x = 0; x < count; ++x) {
      const bool is_number = is_finite(intensities[x]);
      steps_[static_cast<size_t>(x)] =
          regions_.steps.of(is_number ? intensities[x] : static_cast<float>(regions_.steps.lowest));
      counts |= is_number ? 1U << x : 0U;
    }
    counts &= near;
    for (int32_t x = 0; regions_.pinned != nullptr && x < count; ++x) {
      if (regions_.pinned[from + x] != 0) counts &= ~(1U << x);
    }
    add_side(0, counts & inside);
    add_side(1, counts & ~inside);
  }

 private:
  void add_side(int side, uint32_t bits) {
    sums.voxels[side] += std::popcount(bits);
    int64_t sum = 0;
    if (bits == ~0U) {
      for (const int32_t step : steps_) sum += step;
    } else {
      for (; bits != 0; bits &= bits - 1) {
        sum += steps_[static_cast<size_t>(std::countr_zero(bits))];
      }
    }
    sums.steps[side] += sum;
  }

  const Regions& regions_;
  std::array<int32_t, kWordVoxels> steps_{};  ///< of the intensities of a word
};

}  // namespace

RegionSums region_sums(const Regions& regions, const Context& context) {
  const BitRows rows = make_bit_rows(regions.layout.size);
  Words inside(static_cast<size_t>(rows.words()));
  find_inside(regions, rows, context.threads, inside);
  Words near;
  if (regions.reach != Vec3i{}) near = widened(rows, regions.reach, context.threads, inside);
  std::atomic<int64_t> steps[2]{}, voxels[2]{};
  parallel_for(context.threads, rows.rows(), fair_grain(context.threads, rows.rows(), 64),
               [&](int64_t begin, int64_t end) {
                 WordSums some(regions);
                 for (int64_t row = begin; row < end; ++row) {
                   for (int32_t x = 0; x < rows.size.x; x += kWordVoxels) {
                     const auto word =
                         static_cast<size_t>(row * rows.words_per_row + x / kWordVoxels);
                     some.add(row * rows.size.x + x, std::min(kWordVoxels, rows.size.x - x),
                              near.empty() ? ~0U : near[word], inside[word]);
                   }
                 }
                 for (int side = 0; side < 2; ++side) {
                   steps[side] += some.sums.steps[side];
                   voxels[side] += some.sums.voxels[side];
                 }
               });
  return {{steps[0], steps[1]}, {voxels[0], voxels[1]}};
}

}  // namespace larch::levelset::cpu
