// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/initial/label_surface.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

/// Squared distance from a centre to the box of the voxel `steps` further along an axis.
std::vector<float> squares_by_step(double spacing_mm, double most_mm, int32_t size) {
  const double reach = std::min(std::ceil(most_mm / spacing_mm) + 1, size - 1.0);
  std::vector<float> squares{0.0F};
  for (int32_t step = 1; step <= static_cast<int32_t>(reach); ++step) {
    const double mm = (step - 0.5) * spacing_mm;
    squares.push_back(static_cast<float>(mm * mm));
  }
  return squares;
}

void lower_row(float* row, const float* other, float square, int32_t count) {
  for (int32_t x = 0; x < count; ++x) row[x] = std::min(row[x], other[x] + square);
}

/// Lowers each value to the least sum of one along the axis and the square of its steps. A plane
/// holds `rows` rows of `count` values with `stride` between them; along x a row is one value.
void lower_plane(float* first, int64_t stride, int32_t rows, int32_t count,
                 const std::vector<float>& squares, std::vector<float>& before) {
  before.resize(static_cast<size_t>(rows) * static_cast<size_t>(count));
  for (int32_t r = 0; r < rows; ++r) {
    std::copy_n(first + r * stride, count, before.data() + int64_t{r} * count);
  }
  const auto reach = static_cast<int32_t>(squares.size()) - 1;
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t q = std::max(r - reach, 0); q <= std::min(r + reach, rows - 1); ++q) {
      if (q == r) continue;
      lower_row(first + r * stride, before.data() + int64_t{q} * count,
                squares[static_cast<size_t>(std::abs(q - r))], count);
    }
  }
}

/// Squared distances in mm to the boxes of the voxels that are 0 in `squares`.
void lower_everywhere(Volume<float>& squares, double most_mm, int threads) {
  const Vec3i size = squares.size();
  const Vec3d h = squares.grid().spacing_mm;
  const int64_t slice = int64_t{size.x} * size.y;
  const auto along = [&](int axis, int64_t planes, const auto& plane) {
    const std::vector<float> by_step = squares_by_step(h[axis], most_mm, size[axis]);
    parallel_for(threads, planes, fair_grain(threads, planes, 64), [&](int64_t begin, int64_t end) {
      std::vector<float> before;
      for (int64_t p = begin; p < end; ++p) plane(p, by_step, before);
    });
  };
  float* data = squares.data();
  along(0, int64_t{size.y} * size.z, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * size.x, 1, size.x, 1, by_step, before);
  });
  along(1, size.z, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * slice, size.x, size.y, size.x, by_step, before);
  });
  along(2, size.y, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * size.x, slice, size.z, size.x, by_step, before);
  });
}

}  // namespace

Volume<float> distance_to_faces(const Volume<uint8_t>& mask, double most_mm, int threads) {
  const auto squares_to = [&](bool inside) {
    Volume<float> squares(mask.grid());
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      squares[i] = (mask[i] != 0) == inside ? 0.0F : kFar;
    }
    lower_everywhere(squares, most_mm, threads);
    return squares;
  };
  Volume<float> distance_mm = squares_to(true);
  const Volume<float> inwards = squares_to(false);
  const auto most = static_cast<float>(most_mm);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    const float mm = std::min(std::sqrt(std::max(distance_mm[i], inwards[i])), most);
    distance_mm[i] = mask[i] != 0 ? -mm : mm;
  }
  return distance_mm;
}

}  // namespace larch::levelset
