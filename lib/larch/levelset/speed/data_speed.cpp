// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/data_speed.h"

#include <algorithm>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

/// D of a row of voxels along x, from index `from` in the images.
template <bool kGiven>
void make_row(const DataSpeed& parts, int64_t from, std::vector<int16_t>& row) {
  const SpeedRule rule = parts.rule;
  const float* values = parts.values + from;
  int16_t* to = row.data();
  const int32_t count = parts.layout.size.x;
  for (int32_t x = 0; x < count; ++x) to[x] = stored_data_speed<kGiven>(rule, values[x]);
  if (parts.pinned == nullptr) return;
  const uint8_t* pinned = parts.pinned + from;
  for (int32_t x = 0; x < count; ++x) to[x] = pinned[x] != 0 ? kFrozen : to[x];
}

/// The row of bricks along x that starts at voxel `first`.
void make_bricks(const DataSpeed& parts, const Vec3i& first, int16_t* stored) {
  const BrickLayout& layout = parts.layout;
  const Vec3i& size = layout.size;
  std::vector<int16_t> row(static_cast<size_t>(size.x));
  const int32_t end_y = std::min(first.y + kBrick, size.y);
  const int32_t end_z = std::min(first.z + kBrick, size.z);
  if (size.x % kBrick != 0 || end_y - first.y < kBrick || end_z - first.z < kBrick) {
    std::fill_n(stored + layout.offset(first), int64_t{layout.count.x} * kBrickVoxels, int16_t{0});
  }
  for (int32_t z = first.z; z < end_z; ++z) {
    for (int32_t y = first.y; y < end_y; ++y) {
      const int64_t from = size.x * (y + int64_t{size.y} * z);
      parts.rule.is_given ? make_row<true>(parts, from, row) : make_row<false>(parts, from, row);
      int16_t* to = stored + layout.offset({0, y, z});
      for (int32_t x = 0; x < size.x; x += kBrick, to += kBrickVoxels) {
        std::copy_n(row.data() + x, std::min(kBrick, size.x - x), to);
      }
    }
  }
}

}  // namespace

namespace cpu {

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  const Vec3i& count = parts.layout.count;
  const int64_t rows = int64_t{count.y} * count.z;
  const int64_t grain = fair_grain(context.threads, rows, 8);
  parallel_for_each(context.threads, rows, grain, [&](int64_t i) {
    const auto y = static_cast<int32_t>(i % count.y), z = static_cast<int32_t>(i / count.y);
    make_bricks(parts, {0, y * kBrick, z * kBrick}, stored);
  });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const DataSpeed&, int16_t*, const Context&)> kMakeDataSpeed{
    "levelset::make_data_speed", cpu::make_data_speed, LARCH_CUDA_FN(cuda::make_data_speed)};

}  // namespace

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  kMakeDataSpeed(context.device, parts, stored, context);
}

}  // namespace larch::levelset
