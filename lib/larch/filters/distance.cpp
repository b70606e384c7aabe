// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/filters/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::filters {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// Tells whether a voxel of the mask touches the background by a face, an edge or a corner.
bool touches_background(const Volume<uint8_t>& mask, const Vec3i& at) {
  const Vec3i size = mask.size();
  for (int z = std::max(at.z - 1, 0); z <= std::min(at.z + 1, size.z - 1); ++z) {
    for (int y = std::max(at.y - 1, 0); y <= std::min(at.y + 1, size.y - 1); ++y) {
      const uint8_t* row = mask.data() + mask.grid().linear({0, y, z});
      for (int x = std::max(at.x - 1, 0); x <= std::min(at.x + 1, size.x - 1); ++x) {
        if (row[x] == 0) return true;
      }
    }
  }
  return false;
}

/// Squared distances to the boundary layer within rows along x.
std::vector<double> squares_in_rows(const Volume<uint8_t>& mask, int threads) {
  const Vec3i size = mask.size();
  const double spacing = mask.grid().spacing_mm.x;
  std::vector<double> squares(static_cast<size_t>(mask.voxels()), kFar);
  parallel_for_each(threads, int64_t{size.y} * size.z, 64, [&](int64_t r) {
    const Vec3i at{0, static_cast<int32_t>(r % size.y), static_cast<int32_t>(r / size.y)};
    const uint8_t* row = mask.data() + r * size.x;
    double* out = squares.data() + r * size.x;
    for (int x = 0; x < size.x; ++x) {
      if (row[x] != 0 && touches_background(mask, {x, at.y, at.z})) out[x] = 0;
    }
    // Steps to the nearest boundary voxel before, and then to the nearest one behind.
    double steps = kFar;
    for (int x = 0; x < size.x; ++x) out[x] = steps = out[x] == 0 ? 0 : steps + 1;
    steps = kFar;
    for (int x = size.x - 1; x >= 0; --x) {
      steps = out[x] == 0 ? 0 : steps + 1;
      const double mm = std::min(out[x], steps) * spacing;
      out[x] = mm * mm;
    }
  });
  return squares;
}

/// The lower envelope of the parabolas (x - i)^2 w + f(i), of which it keeps those that are lowest
/// somewhere.
class Envelope {
 public:
  Envelope(int length, double weight)
      : length_(length),
        weight_(weight),
        lowest_(static_cast<size_t>(length)),
        starts_(static_cast<size_t>(length)) {}

  /// Sets `out` to the minimum over all parabolas.
  void operator()(const double* values, double* out) {
    size_t count = 0;
    for (int i = 0; i < length_; ++i) {
      if (values[i] == kFar) continue;
      double start = -kFar;
      while (count > 0) {
        const int j = lowest_[count - 1];
        // Where parabola i becomes lower than parabola j < i.
        start = (values[i] - values[j] + weight_ * (double{1} * i * i - double{1} * j * j)) /
                (2 * weight_ * (i - j));
        if (start > starts_[count - 1]) break;
        --count;
        start = -kFar;
      }
      lowest_[count] = i;
      starts_[count] = start;
      ++count;
    }
    // There may be no boundary voxel in this line and those before it.
    if (count == 0) std::fill_n(out, length_, kFar);
    size_t k = 0;
    for (int i = 0; i < length_ && count > 0; ++i) {
      while (k + 1 < count && starts_[k + 1] < i) ++k;
      const int j = lowest_[k];
      const double away = i - j;
      out[i] = away * away * weight_ + values[j];
    }
  }

 private:
  const int length_;
  const double weight_;
  std::vector<int> lowest_;     ///< the parabolas of the envelope, from left to right
  std::vector<double> starts_;  ///< from where on each is the lowest
};

/// Sets the lines along an axis of `to` to what make()(line of `from`, line of `to`) makes of them,
/// on several threads. Lines side by side are copied together, since the voxels of one are far from
/// each other in memory.
template <class T, class Make>
void for_lines(const T* from, std::vector<double>& to, const Vec3i& size, int axis, int threads,
               const Make& make) {
  constexpr int64_t kTogether = 16;
  const int64_t strides[3] = {1, size.x, int64_t{size.x} * size.y}, stride = strides[axis];
  const int64_t length = size[axis], lines = strides[2] * size.z / length;
  parallel_for(threads, lines, 256, [&](int64_t begin, int64_t end) {
    auto body = make();
    std::vector<T> in(static_cast<size_t>(kTogether * length));
    std::vector<double> out(in.size());
    for (int64_t line = begin, count = 0; line < end; line += count) {
      count = std::min({kTogether, end - line, stride - line % stride});
      const int64_t first = line / stride * stride * length + line % stride;
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t k = 0; k < count; ++k) in[k * length + i] = from[first + i * stride + k];
      }
      for (int64_t k = 0; k < count; ++k) body(&in[k * length], &out[k * length]);
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t k = 0; k < count; ++k) to[first + i * stride + k] = out[k * length + i];
      }
    }
  });
}

/// Adds the distances along an axis.
void add_axis(std::vector<double>& squares, const Grid& grid, int axis, int threads) {
  const int length = grid.size[axis];
  const double weight = grid.spacing_mm[axis] * grid.spacing_mm[axis];
  if (length == 1) return;
  for_lines(squares.data(), squares, grid.size, axis, threads,
            [&] { return Envelope(length, weight); });
}

/// Squared distances along an axis to the nearest place where a field changes its sign.
void set_squares_to_zeros(std::vector<double>& squares, const Volume<float>& field, int axis,
                          int threads) {
  const int length = field.size()[axis];
  const auto body = [=, spacing = field.grid().spacing_mm[axis]](const float* values, double* out) {
    const auto zero_before = [&](int i, double otherwise) {
      if (i == 0 || i == length) return otherwise;
      const double a = values[i - 1], b = values[i];
      return (a < 0) == (b < 0) ? otherwise : i - 1 + a / (a - b);
    };
    double before = -kFar, behind = kFar;
    for (int i = 0; i < length; ++i) out[i] = i - (before = zero_before(i, before));
    for (int i = length - 1; i >= 0; --i) {
      behind = zero_before(i + 1, behind);
      const double mm = std::min(out[i], behind - i) * spacing;
      out[i] = mm * mm;
    }
  };
  for_lines(field.data(), squares, field.size(), axis, threads, [&] { return body; });
}

}  // namespace

Volume<float> signed_distance_mm(const Volume<uint8_t>& mask, int threads) {
  const int64_t inside = std::count_if(mask.begin(), mask.end(), [](uint8_t v) { return v != 0; });
  if (inside == 0 || inside == mask.voxels()) {
    throw InputError(std::string("the mask is ") + (inside == 0 ? "empty" : "full") +
                     ", so it has no boundary to measure distances from");
  }
  std::vector<double> squares = squares_in_rows(mask, threads);
  add_axis(squares, mask.grid(), 1, threads);
  add_axis(squares, mask.grid(), 2, threads);
  Volume<float> out(mask.grid());
  parallel_for_each(threads, out.voxels(), 1 << 16, [&](int64_t i) {
    const auto mm = static_cast<float>(std::sqrt(squares[static_cast<size_t>(i)]));
    out[i] = mask[i] != 0 ? -mm : mm;
  });
  return out;
}

Volume<float> distance_to_zeros_mm(const Volume<float>& field, int threads) {
  const Grid& grid = field.grid();
  std::vector<double> squares(static_cast<size_t>(field.voxels()));
  Volume<float> out(grid, std::numeric_limits<float>::infinity());
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.size[axis] == 1) continue;
    set_squares_to_zeros(squares, field, axis, threads);
    for (int other = 0; other < 3; ++other) {
      if (other != axis) add_axis(squares, grid, other, threads);
    }
    parallel_for_each(threads, out.voxels(), 1 << 16, [&](int64_t i) {
      out[i] = std::min(out[i], static_cast<float>(std::sqrt(squares[static_cast<size_t>(i)])));
    });
  }
  for (int64_t i = 0; i < out.voxels(); ++i) out[i] = field[i] < 0 ? -out[i] : out[i];
  return out;
}

}  // namespace larch::filters
