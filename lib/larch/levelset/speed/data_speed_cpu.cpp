// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/levelset/brick_rows.h"
#include "larch/levelset/speed/data_speed.h"

namespace larch::levelset::cpu {
namespace {

/// D of a row of voxels along x, from index `from` in the images.
template <bool kGiven, bool kRegions>
void make_row(const DataSpeed& parts, int64_t from, const int16_t* edge_stop, int16_t* row) {
  const SpeedRule rule = parts.rule;
  const int32_t count = parts.layout.size.x;
  constexpr bool kIntensities = kRegions || !kGiven;
  const float* intensities = kIntensities ? parts.images.intensities + from : nullptr;
  const float* given = kGiven ? parts.images.given + from : nullptr;
  const auto speed_at = [&](int32_t x, double stop) {
    return stored_data_speed<kGiven, kRegions>(rule, kIntensities ? intensities[x] : 0.0F,
                                               kGiven ? given[x] : 0.0F, stop);
  };
  if (edge_stop == nullptr) {
    for (int32_t x = 0; x < count; ++x) row[x] = speed_at(x, 1);
  } else {
    for (int32_t x = 0; x < count; ++x) row[x] = speed_at(x, edge_stop_of(edge_stop[x]));
  }
  if (parts.images.pinned == nullptr) return;
  const uint8_t* pinned = parts.images.pinned + from;
  for (int32_t x = 0; x < count; ++x) row[x] = pinned[x] != 0 ? kFrozen : row[x];
}

/// A row of voxels in the bricks that it runs through: calls copy(index in the row, offset in the
/// bricks, voxels).
template <class Copy>
void for_parts_of_row(const BrickLayout& layout, int32_t y, int32_t z, const Copy& copy) {
  int64_t at = layout.offset({0, y, z});
  for (int32_t x = 0; x < layout.size.x; x += kBrick, at += kBrickVoxels) {
    copy(x, at, std::min(kBrick, layout.size.x - x));
  }
}

/// The rows of bricks that start at `first`.
template <bool kGiven, bool kRegions>
void make_bricks(const DataSpeed& parts, const Vec3i& first, int16_t* stored) {
  const BrickLayout& layout = parts.layout;
  const Vec3i& size = layout.size;
  std::vector<int16_t> row(static_cast<size_t>(size.x));
  std::vector<int16_t> stop(parts.edge_stop != nullptr ? row.size() : 0);
  if (size.x % kBrick != 0 || first.y + kBrick > size.y || first.z + kBrick > size.z) {
    std::fill_n(stored + layout.offset(first), int64_t{layout.count.x} * kBrickVoxels, int16_t{0});
  }
  for_rows_of_bricks(layout, first, [&](int32_t y, int32_t z) {
    if (!stop.empty()) {
      for_parts_of_row(layout, y, z, [&](int32_t x, int64_t at, int32_t count) {
        std::copy_n(parts.edge_stop + at, count, stop.data() + x);
      });
    }
    make_row<kGiven, kRegions>(parts, size.x * (y + int64_t{size.y} * z),
                               stop.empty() ? nullptr : stop.data(), row.data());
    for_parts_of_row(layout, y, z, [&](int32_t x, int64_t at, int32_t count) {
      std::copy_n(row.data() + x, count, stored + at);
    });
  });
}

}  // namespace

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  with_parts_of(parts.rule, [&]<bool kGiven, bool kRegions>() {
    for_brick_rows(parts.layout, context.threads, [&](const Vec3i& first) {
      make_bricks<kGiven, kRegions>(parts, first, stored);
    });
  });
}

}  // namespace larch::levelset::cpu
