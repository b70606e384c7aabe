// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/outside.h"

#include <algorithm>

namespace larch::dsa {
namespace {

bool is_outside(const BlockMatch& match) {
  return (match.flags & kBlockOutside) != 0;
}

bool is_beside_searched(const BlockGrid& grid, std::span<const BlockMatch> frame, int32_t x,
                        int32_t y) {
  for (int32_t j = std::max(0, y - 1); j <= std::min(grid.count.y - 1, y + 1); ++j) {
    for (int32_t i = std::max(0, x - 1); i <= std::min(grid.count.x - 1, x + 1); ++i) {
      if (!is_outside(frame[static_cast<size_t>(j * grid.count.x + i)])) return true;
    }
  }
  return false;
}

}  // namespace

void fade_outside(const BlockGrid& grid, const Vec3i& shift, std::span<BlockMatch> frame) {
  const auto is_found = [](const BlockMatch& match) { return (match.flags & kBlockReplaced) == 0; };
  if (std::none_of(frame.begin(), frame.end(), is_found)) return;
  for (int32_t y = 0; y < grid.count.y; ++y) {
    for (int32_t x = 0; x < grid.count.x; ++x) {
      BlockMatch& match = frame[static_cast<size_t>(y * grid.count.x + x)];
      if (is_outside(match) && !is_beside_searched(grid, frame, x, y)) match.vector = shift;
    }
  }
}

}  // namespace larch::dsa
