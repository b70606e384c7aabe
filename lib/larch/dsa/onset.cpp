// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/onset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "larch/dsa/field/warp.h"

namespace larch::dsa {
namespace {

constexpr int32_t kCells = 128;  // along the shorter side
constexpr int32_t kAround = 6;   // cells on each side that make the background
constexpr int32_t kApart = 3;    // cells that are left out beside those that do not count
constexpr size_t kShare = 500;   // one cell in so many is extreme,
constexpr size_t kMinimum = 8;   // so many at least
constexpr double kDarker = 1.25;
constexpr size_t kLasting = 10, kMinimumLasting = 2;  // frames,
constexpr size_t kDark = 8, kOf = 10;                 // of which so many are darker

/// A frame made smaller.
struct Cells {
  int32_t width = 0, height = 0;
  std::vector<double> means{};
  std::vector<uint8_t> counts{};

  size_t at(int32_t x, int32_t y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
  }
  /// Calls body(cell) for those within `reach` of a cell, itself included, along both axes.
  template <class Body>
  void around(int32_t x, int32_t y, int32_t reach, const Body& body) const {
    for (int32_t j = std::max(0, y - reach); j <= std::min(height - 1, y + reach); ++j) {
      for (int32_t i = std::max(0, x - reach); i <= std::min(width - 1, x + reach); ++i) {
        body(at(i, j));
      }
    }
  }
};

Cells make_cells(std::span<const int16_t> difference, std::span<const uint8_t> validity,
                 const Vec3i& size) {
  const int32_t side = std::max(1, (std::min(size.x, size.y) + kCells / 2) / kCells);
  Cells cells{size.x / side, size.y / side, {}, {}};
  for (int32_t y = 0; y < cells.height; ++y) {
    for (int32_t x = 0; x < cells.width; ++x) {
      int64_t sum = 0, count = 0;
      for (int32_t j = 0; j < side; ++j) {
        const size_t row = static_cast<size_t>(y * side + j) * static_cast<size_t>(size.x);
        for (size_t i = 0; i < static_cast<size_t>(side); ++i) {
          const size_t pixel = row + static_cast<size_t>(x * side) + i;
          if (validity[pixel] > static_cast<uint8_t>(Validity::kBeyondMask)) continue;
          sum += difference[pixel];
          ++count;
        }
      }
      cells.counts.push_back(2 * count >= int64_t{side} * side ? 1 : 0);
      cells.means.push_back(count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0);
    }
  }
  return cells;
}

}  // namespace

Extremes extremes_of(std::span<const int16_t> difference, std::span<const uint8_t> validity,
                     const Vec3i& size) {
  const Cells cells = make_cells(difference, validity, size);
  std::vector<double> heights, background;
  for (int32_t y = 0; y < cells.height; ++y) {
    for (int32_t x = 0; x < cells.width; ++x) {
      bool is_inside = true;
      cells.around(x, y, kApart,
                   [&](size_t cell) { is_inside = is_inside && cells.counts[cell] != 0; });
      if (!is_inside) continue;
      background.clear();
      cells.around(x, y, kAround, [&](size_t cell) {
        if (cells.counts[cell] != 0) background.push_back(cells.means[cell]);
      });
      const auto middle = background.begin() + static_cast<ptrdiff_t>(background.size() / 2);
      std::nth_element(background.begin(), middle, background.end());
      heights.push_back(cells.means[cells.at(x, y)] - *middle);
    }
  }
  if (heights.empty()) return {};
  std::sort(heights.begin(), heights.end());
  const auto n =
      static_cast<ptrdiff_t>(std::min(heights.size(), std::max(kMinimum, heights.size() / kShare)));
  const double dark = std::accumulate(heights.begin(), heights.begin() + n, 0.0);
  const double bright = std::accumulate(heights.end() - n, heights.end(), 0.0);
  return {std::max(0.0, -dark / static_cast<double>(n)),
          std::max(0.0, bright / static_cast<double>(n))};
}

std::optional<size_t> find_onset(std::span<const Extremes> frames, bool are_all) {
  const auto is_darker = [](const Extremes& e) { return e.dark > kDarker * e.bright; };
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t count = std::min(kLasting, frames.size() - i);
    if ((count < kLasting && !are_all) || count < kMinimumLasting) break;
    const auto window = frames.subspan(i, count);
    const auto darker = std::count_if(window.begin(), window.end(), is_darker);
    if (is_darker(frames[i]) && kOf * static_cast<size_t>(darker) >= kDark * count) return i;
  }
  return std::nullopt;
}

}  // namespace larch::dsa
