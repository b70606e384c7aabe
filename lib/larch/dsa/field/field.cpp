// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/field.h"

#include <algorithm>
#include <array>

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

namespace {

void check_vectors(const BlockGrid& grid, std::span<const Vec3i> vectors) {
  if (static_cast<int64_t>(vectors.size()) != grid.blocks()) {
    throw UsageError("the number of vectors is not that of the blocks of the grid");
  }
}

/// Vectors in pixels at the centres and one more all around, as the border is filled.
class SurroundedGrid {
 public:
  SurroundedGrid(const BlockGrid& grid, std::span<const Vec3i> vectors, BorderField border)
      : grid_(grid), vectors_(vectors), border_(border) {}

  /// Centres along an axis, those before the first and after the last included.
  int32_t count(int axis) const { return grid_.count[axis] + 2; }
  bool is_flat(int axis) const { return grid_.image[axis] == 1; }

  /// Distance from centre i to centre i + 1 in pixels; 0 is the one before the first.
  double pitch(int axis, int32_t i) const {
    const int32_t last = grid_.count[axis] - 1;
    if (last == 0) return grid_.block[axis];
    const auto& starts = grid_.starts[static_cast<size_t>(axis)];
    const auto inner = static_cast<size_t>(std::clamp(i - 1, 0, last - 1));
    return starts[inner + 1] - starts[inner];
  }

  Vec3d at(Vec3i place) const {
    Vec3i nearest, inner;
    bool is_beyond = false;
    for (int axis = 0; axis < 3; ++axis) {
      const int32_t last = grid_.count[axis] - 1, i = place[axis] - 1;
      nearest[axis] = std::clamp(i, 0, last);
      inner[axis] = std::clamp(2 * nearest[axis] - i, 0, last);
      is_beyond |= nearest[axis] != i && !is_flat(axis);
    }
    if (is_beyond && border_ == BorderField::kZero) return {};
    if (!is_beyond || border_ == BorderField::kClamp) return found(nearest);
    return extrapolated(place, nearest, inner);
  }

 private:
  Vec3d found(const Vec3i& at) const {
    const int64_t row = static_cast<int64_t>(at.z) * grid_.count.y + at.y;
    const Vec3i& v = vectors_[static_cast<size_t>(row * grid_.count.x + at.x)];
    return v.cast<double>() / static_cast<double>(1 << kVectorBits);
  }
  /// Returns the linear along each axis, and so multilinear beyond corners.
  Vec3d extrapolated(const Vec3i& place, const Vec3i& nearest, const Vec3i& inner) const {
    Vec3d sum{};
    for (int corner = 0; corner < 8; ++corner) {
      Vec3i from = nearest;
      double weight = 1;
      for (int axis = 0; axis < 3; ++axis) {
        const bool is_beyond = nearest[axis] != place[axis] - 1;
        const bool takes_inner = ((corner >> axis) & 1) != 0;
        if (takes_inner) from[axis] = inner[axis];
        weight *= is_beyond ? (takes_inner ? -1 : 2) : (takes_inner ? 0 : 1);
      }
      if (weight != 0) sum += found(from) * weight;
    }
    return sum;
  }

  const BlockGrid& grid_;
  std::span<const Vec3i> vectors_;
  BorderField border_;
};

double determinant(const std::array<Vec3d, 3>& columns) {
  return dot(columns[0], cross(columns[1], columns[2]));
}

/// Returns the least Jacobian at the corners of the cell that begins at `first`.
double least_of_cell(const SurroundedGrid& grid, const Vec3i& first) {
  double least = 1e300;
  for (int corner = 0; corner < 8; ++corner) {
    Vec3i here = first;
    for (int axis = 0; axis < 3; ++axis) here[axis] += (corner >> axis) & 1;
    std::array<Vec3d, 3> columns{Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, Vec3d{0, 0, 1}};
    for (int axis = 0; axis < 3; ++axis) {
      if (grid.is_flat(axis)) continue;
      Vec3i low = here, high = here;
      low[axis] = first[axis];
      high[axis] = first[axis] + 1;
      columns[static_cast<size_t>(axis)] +=
          (grid.at(high) - grid.at(low)) / grid.pitch(axis, first[axis]);
    }
    least = std::min(least, determinant(columns));
  }
  return least;
}

}  // namespace

FieldView FieldGrid::view(const Vec3i* vectors, BorderField border) const {
  FieldView view;
  std::copy_n(axes, 3, view.axes);
  view.vectors = vectors;
  view.border = border;
  return view;
}

FieldGrid make_field_grid(const BlockGrid& grid, const Device& device) {
  std::vector<int32_t> starts;
  for (const auto& along : grid.starts) starts.insert(starts.end(), along.begin(), along.end());
  FieldGrid out;
  out.starts = Buffer<int32_t>(device, starts);
  const int32_t* first = out.starts.data();
  for (int axis = 0; axis < 3; ++axis) {
    out.axes[axis] = {first, grid.count[axis], grid.block[axis]};
    first += grid.count[axis];
  }
  return out;
}

std::vector<Vec3i> vectors_at(const BlockGrid& to, const BlockGrid& from,
                              std::span<const Vec3i> vectors, BorderField border) {
  check_vectors(from, vectors);
  const FieldGrid places = make_field_grid(from, Device::cpu());
  const FieldView view = places.view(vectors.data(), border);
  std::vector<Vec3i> out;
  for (int32_t block = 0; block < to.blocks(); ++block) {
    const Vec3i at = to.twice_centre(block);
    AxisWeights weights[3];
    for (int axis = 0; axis < 3; ++axis) {
      weights[axis] = axis_weights_at_half(view.axes[axis], border, at[axis]);
    }
    out.push_back(field_q16(field_sum(view, weights[0], weights[1], weights[2])));
  }
  return out;
}

FieldShape shape_of_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                          BorderField border) {
  check_vectors(grid, vectors);
  FieldShape shape;
  for (const Vec3i& v : vectors) {
    const double length = norm(v.cast<double>()) / (1 << kVectorBits);
    shape.mean_px += length / static_cast<double>(vectors.size());
    shape.longest_px = std::max(shape.longest_px, length);
  }
  const SurroundedGrid surrounded(grid, vectors, border);
  shape.least_jacobian = 1e300;
  for (int32_t k = 0; k + 1 < (surrounded.is_flat(2) ? 2 : surrounded.count(2)); ++k) {
    for (int32_t j = 0; j + 1 < surrounded.count(1); ++j) {
      for (int32_t i = 0; i + 1 < surrounded.count(0); ++i) {
        shape.least_jacobian = std::min(shape.least_jacobian, least_of_cell(surrounded, {i, j, k}));
      }
    }
  }
  return shape;
}

}  // namespace larch::dsa
