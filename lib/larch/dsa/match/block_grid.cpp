// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/match/block_grid.h"

#include <algorithm>

#include "larch/core/error.h"

namespace larch::dsa {
namespace {

std::vector<int32_t> starts_along(int32_t length, int32_t block, int32_t step) {
  if (length < 1 || block < 1 || step < 1) {
    throw UsageError("a grid of blocks needs an image, a block and a step of one pixel at least");
  }
  if (length <= block) return {0};
  const int32_t room = length - block;
  const int32_t n = 1 + (room + step - 1) / step;
  std::vector<int32_t> starts;
  for (int64_t i = 0; i < n; ++i) {  // i room / (n - 1), rounded
    starts.push_back(static_cast<int32_t>((2 * i * room + (n - 1)) / (2 * (n - 1))));
  }
  return starts;
}

}  // namespace

BlockGrid make_block_grid(const Vec3i& image, const Vec3i& block, const Vec3i& step) {
  BlockGrid grid;
  grid.image = image;
  grid.block = {std::min(image.x, block.x), std::min(image.y, block.y), std::min(image.z, block.z)};
  grid.starts = {starts_along(image.x, block.x, step.x), starts_along(image.y, block.y, step.y),
                 starts_along(image.z, block.z, step.z)};
  const auto count = [&](size_t axis) { return static_cast<int32_t>(grid.starts[axis].size()); };
  grid.count = {count(0), count(1), count(2)};
  return grid;
}

}  // namespace larch::dsa
