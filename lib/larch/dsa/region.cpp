// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/region.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>

#include "larch/core/error.h"
#include "larch/dsa/scores.h"
#include "larch/filters/components.h"

namespace larch::dsa {
namespace {

/// Half the side of the windows in which flatness is judged.
constexpr int32_t kReach = 7;
/// Share of a row that has to be flat, in hundredths.
constexpr int64_t kFlatPercent = 98;

/// Where the line at height y crosses the edges of a polygon, rising.
std::vector<double> crossings(std::span<const Corner> corners, double y) {
  std::vector<double> at;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Corner &a = corners[i], &b = corners[(i + 1) % corners.size()];
    if ((a.y <= y) == (b.y <= y)) continue;
    at.push_back(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x));
  }
  std::sort(at.begin(), at.end());
  return at;
}

/// Sums of values and squares over windows: of the picture left of and above each pixel.
class WindowSums {
 public:
  WindowSums(std::span<const uint32_t> values, const Vec3i& size)
      : size_(size), sums_((size_t(size.x) + 1) * (size_t(size.y) + 1)) {
    size_t at = 0;
    for (int32_t y = 0; y < size.y; ++y) {
      Sums row;
      for (int32_t x = 0; x < size.x; ++x, ++at) {
        const double v = values[at];
        row = {row.value + v, row.square + v * v};
        const Sums& above = sums_[index(x + 1, y)];
        sums_[index(x + 1, y + 1)] = {above.value + row.value, above.square + row.square};
      }
    }
  }
  /// Returns mean and variance of the values within kReach of a pixel, as far as there are some.
  std::pair<double, double> around(int32_t x, int32_t y) const {
    const int32_t x0 = std::max(0, x - kReach), x1 = std::min(size_.x, x + kReach + 1);
    const int32_t y0 = std::max(0, y - kReach), y1 = std::min(size_.y, y + kReach + 1);
    const double n = static_cast<double>(x1 - x0) * (y1 - y0);
    const auto mean_of = [&](double Sums::*of) {
      return (sums_[index(x1, y1)].*of - sums_[index(x0, y1)].*of - sums_[index(x1, y0)].*of +
              sums_[index(x0, y0)].*of) /
             n;
    };
    const double mean = mean_of(&Sums::value);
    return {mean, std::max(0.0, mean_of(&Sums::square) - mean * mean)};
  }

 private:
  struct Sums {
    double value = 0, square = 0;  // whole numbers below 2^53 and nearly so
  };
  size_t index(int32_t x, int32_t y) const { return size_t(y) * (size_t(size_.x) + 1) + size_t(x); }
  Vec3i size_;
  std::vector<Sums> sums_;
};

/// Returns the lines from `flat` that are not outside, as first line and number. `flat`: by line.
std::pair<int32_t, int32_t> open_lines(const std::vector<bool>& flat) {
  const auto count = static_cast<int32_t>(flat.size());
  int32_t first = 0, last = count - 1;
  while (first <= last && flat[static_cast<size_t>(first)]) ++first;
  while (last >= first && flat[static_cast<size_t>(last)]) --last;
  if (first > last) return {0, count};
  if (first > 0) first += kReach;
  if (last < count - 1) last -= kReach;
  return last < first ? std::pair{0, count} : std::pair{first, last - first + 1};
}

/// Lines between those at the edges that are flat nearly everywhere; pixels that are, by line.
Rectangle open_rectangle(const std::vector<int64_t>& in_column,
                         const std::vector<int64_t>& in_row) {
  const auto are_flat = [](const std::vector<int64_t>& flat, size_t length) {
    std::vector<bool> lines(flat.size());
    for (size_t i = 0; i < flat.size(); ++i) {
      lines[i] = flat[i] * 100 >= static_cast<int64_t>(length) * kFlatPercent;
    }
    return lines;
  };
  const auto [left, width] = open_lines(are_flat(in_column, in_row.size()));
  const auto [top, height] = open_lines(are_flat(in_row, in_column.size()));
  return {left, top, width, height};
}

/// Leaves the labels that are joined with the edge of the picture through sides of pixels.
void keep_joined_with_edge(std::vector<uint8_t>& labels, const Vec3i& size) {
  constexpr uint8_t kJoined = 2;
  std::vector<int64_t> open;
  const auto visit = [&](int32_t x, int32_t y) {
    if (x < 0 || y < 0 || x >= size.x || y >= size.y) return;
    const int64_t at = int64_t{y} * size.x + x;
    if (labels[static_cast<size_t>(at)] != 1) return;
    labels[static_cast<size_t>(at)] = kJoined;
    open.push_back(at);
  };
  for (int32_t x = 0; x < size.x; ++x) visit(x, 0), visit(x, size.y - 1);
  for (int32_t y = 0; y < size.y; ++y) visit(0, y), visit(size.x - 1, y);
  while (!open.empty()) {
    const auto x = static_cast<int32_t>(open.back() % size.x);
    const auto y = static_cast<int32_t>(open.back() / size.x);
    open.pop_back();
    visit(x - 1, y), visit(x + 1, y), visit(x, y - 1), visit(x, y + 1);
  }
  for (uint8_t& label : labels) label = label == kJoined ? 1 : 0;
}

/// Of the profile across a collimator's edge: how far behind it the level there is read, how far
/// from each other values are compared, how wide an edge may be, and lines that make a median.
constexpr int32_t kBehind = 3, kApart = 4, kWidestEdge = 12;
constexpr int64_t kMinimumLines = 16;

/// Lines across a collimator's edge, and on how many of them it is level `k` pixels inside of it.
struct EdgeLines {
  int64_t lines = 0;
  std::array<int64_t, kWidestEdge> level{};

  /// Adds a line of `count` pixels, `stride` apart.
  void add(const uint32_t* values, const uint8_t* open, int32_t count, int64_t stride) {
    constexpr int32_t kInside = kWidestEdge + kApart;
    int32_t covered = 0;  // pixels in a row up to here
    for (int32_t i = 0; i + kInside <= count; ++i) {
      const bool begins = covered >= kBehind && open[i * stride] != 0;
      covered = open[i * stride] == 0 ? covered + 1 : 0;
      if (!begins) continue;
      bool stays = true;
      for (int32_t k = 0; k < kInside; ++k) stays = stays && open[(i + k) * stride] != 0;
      if (stays) add_profile(values + i * stride, stride);
    }
  }

 private:
  void add_profile(const uint32_t* inside, int64_t stride) {
    ++lines;
    const int64_t behind = inside[-kBehind * stride];
    const auto height = [&](int32_t k) { return std::abs(int64_t{inside[k * stride]} - behind); };
    for (int32_t k = 0; k < kWidestEdge; ++k) {
      if (10 * height(k) >= 9 * height(k + kApart)) ++level[static_cast<size_t>(k)];
    }
  }
};

}  // namespace

std::vector<uint8_t> whole_region(const Vec3i& size) {
  return std::vector<uint8_t>(static_cast<size_t>(size.x) * static_cast<size_t>(size.y), 1);
}

void keep_rectangle(std::vector<uint8_t>& region, const Vec3i& size, const Rectangle& rectangle) {
  const auto [left, top, width, height] = rectangle;
  if (left < 0 || top < 0 || width < 1 || height < 1 || left > size.x - width ||
      top > size.y - height) {
    throw UsageError("the rectangle " + std::to_string(left) + "," + std::to_string(top) + "," +
                     std::to_string(width) + "," + std::to_string(height) +
                     " (x,y,width,height) does not lie within the frame of " +
                     std::to_string(size.x) + "x" + std::to_string(size.y) + " pixels");
  }
  size_t at = 0;
  for (int32_t y = 0; y < size.y; ++y) {
    for (int32_t x = 0; x < size.x; ++x, ++at) {
      if (x < left || x >= left + width || y < top || y >= top + height) region[at] = 0;
    }
  }
}

void keep_polygon(std::vector<uint8_t>& region, const Vec3i& size,
                  std::span<const Corner> corners) {
  if (corners.size() < 3) throw UsageError("a polygon has three corners or more: x,y,x,y,x,y");
  for (const Corner& corner : corners) {
    if (!std::isfinite(corner.x) || !std::isfinite(corner.y)) {
      throw UsageError("the corners of a polygon are numbers of pixels");
    }
  }
  int64_t inside = 0;
  size_t at = 0;
  for (int32_t y = 0; y < size.y; ++y) {
    const std::vector<double> edges = crossings(corners, y);
    size_t next = 0;
    for (int32_t x = 0; x < size.x; ++x, ++at) {
      while (next < edges.size() && edges[next] <= x) ++next;
      inside += next % 2 != 0 ? 1 : 0;
      if (next % 2 == 0) region[at] = 0;
    }
  }
  if (inside == 0) throw UsageError("the polygon holds no pixel of the frame");
}

void keep_common(std::vector<uint8_t>& region, std::span<const uint8_t> other) {
  for (size_t i = 0; i < region.size(); ++i) {
    if (other[i] == 0) region[i] = 0;
  }
}

void require_region(std::span<const uint8_t> region, size_t pixels) {
  if (region.empty() || region.size() == pixels) return;
  throw UsageError("the region has " + std::to_string(region.size()) + " pixels, the image " +
                   std::to_string(pixels));
}

int64_t count_inside(std::span<const uint8_t> region) {
  return std::count_if(region.begin(), region.end(), [](uint8_t v) { return v != 0; });
}

int64_t require_inside(std::span<const uint8_t> region, const std::string& name) {
  const int64_t inside = count_inside(region);
  if (inside > 0) return inside;
  throw InputError("'" + name +
                   "': no pixel is left inside of region and shutter; give another region, or "
                   "--shutter none");
}

std::vector<uint8_t> find_shutter(std::span<const uint32_t> sum, const Vec3i& size,
                                  const ShutterRule& rule) {
  const WindowSums sums(sum, size);
  const auto square = [](double v) { return v * v; };
  const double flat = square(rule.flat * rule.frames);
  const double flat_dark = square(rule.flat_where_dark * rule.frames);
  std::vector<int64_t> in_column(static_cast<size_t>(size.x)), in_row(static_cast<size_t>(size.y));
  std::vector<uint8_t> dark(sum.size());
  size_t at = 0;
  for (int32_t y = 0; y < size.y; ++y) {
    for (int32_t x = 0; x < size.x; ++x, ++at) {
      const auto [mean, variance] = sums.around(x, y);
      const double level = mean / rule.frames;
      const bool is_dark = (rule.top > 0 ? rule.top - level : level) < rule.dark;
      dark[at] = is_dark && variance < flat_dark ? 1 : 0;
      if (variance >= flat) continue;
      ++in_column[static_cast<size_t>(x)];
      ++in_row[static_cast<size_t>(y)];
    }
  }
  keep_joined_with_edge(dark, size);
  const std::vector<uint8_t> covered = filters::dilated(dark, size, kReach);
  std::vector<uint8_t> region = whole_region(size);
  keep_rectangle(region, size, open_rectangle(in_column, in_row));
  for (size_t i = 0; i < region.size(); ++i) {
    if (covered[i] != 0) region[i] = 0;
  }
  return count_inside(region) > 0 ? region : whole_region(size);
}

int32_t blurred_edge(std::span<const uint32_t> sum, const Vec3i& size,
                     std::span<const uint8_t> open) {
  EdgeLines edges;
  const int64_t width = size.x, last = static_cast<int64_t>(sum.size()) - 1;
  for (int32_t y = 0; y < size.y; ++y) {
    edges.add(sum.data() + y * width, open.data() + y * width, size.x, 1);
    const int64_t end = last - y * width;
    edges.add(sum.data() + end, open.data() + end, size.x, -1);
  }
  for (int32_t x = 0; x < size.x; ++x) {
    edges.add(sum.data() + x, open.data() + x, size.y, width);
    edges.add(sum.data() + last - x, open.data() + last - x, size.y, -width);
  }
  if (edges.lines < kMinimumLines) return 0;
  const auto first = std::find_if(edges.level.begin(), edges.level.end(),
                                  [&](int64_t level) { return 2 * level >= edges.lines; });
  return static_cast<int32_t>(first - edges.level.begin());
}

void narrow_open(std::vector<uint8_t>& open, const Vec3i& size, int32_t width) {
  std::vector<uint8_t> covered(open.size());
  std::transform(open.begin(), open.end(), covered.begin(),
                 [](uint8_t is_open) { return static_cast<uint8_t>(is_open == 0); });
  covered = filters::dilated(covered, size, width);
  if (count_inside(covered) == static_cast<int64_t>(covered.size())) return;
  std::transform(covered.begin(), covered.end(), open.begin(),
                 [](uint8_t is_covered) { return static_cast<uint8_t>(is_covered == 0); });
}

void fill_covered(std::span<uint16_t> frame, const Vec3i& size, std::span<const uint8_t> open) {
  const auto width = static_cast<size_t>(size.x), height = static_cast<size_t>(size.y);
  std::vector<size_t> rows;  // with an open pixel
  for (size_t y = 0; y < height; ++y) {
    const auto is_open = open.subspan(y * width, width);
    const auto row = frame.subspan(y * width, width);
    size_t last = width;  // open pixel so far
    for (size_t x = 0; x < width; ++x) {
      if (is_open[x] != 0) {
        if (last == width) std::fill(row.begin(), row.begin() + static_cast<ptrdiff_t>(x), row[x]);
        last = x;
      } else if (last < width) {
        row[x] = row[last];
      }
    }
    if (last < width) rows.push_back(y);
  }
  if (rows.empty()) return;
  for (size_t y = 0, nearest = 0; y < height; ++y) {
    const auto distance = [&](size_t row) { return row > y ? row - y : y - row; };
    while (nearest + 1 < rows.size() && distance(rows[nearest + 1]) < distance(rows[nearest])) {
      ++nearest;
    }
    if (rows[nearest] == y) continue;
    const auto from = frame.subspan(rows[nearest] * width, width);
    std::copy(from.begin(), from.end(), frame.begin() + static_cast<ptrdiff_t>(y * width));
  }
}

}  // namespace larch::dsa
