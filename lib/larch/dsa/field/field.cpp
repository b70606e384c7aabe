// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/field.h"

#include <algorithm>
#include <array>

namespace larch::dsa {
namespace {

std::vector<int32_t> starts_along(int32_t length, int32_t block, int32_t step) {
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

/// Vectors at the centres of blocks, and as the border is filled one pitch beyond the outermost
/// ones along each axis of more than one pixel.
struct Surroundings {
  std::array<std::vector<int32_t>, 3> twice_at{};  ///< places along each axis, in half pixels
  std::vector<Vec3d> vectors{};                    ///< pixels, x fastest

  bool is_flat(int axis) const { return count(axis) == 1; }
  int32_t count(int axis) const {
    return static_cast<int32_t>(twice_at[static_cast<size_t>(axis)].size());
  }
  const Vec3d& at(const Vec3i& i) const {
    const int64_t row = static_cast<int64_t>(i.z) * count(1) + i.y;
    return vectors[static_cast<size_t>(row * count(0) + i.x)];
  }
  /// Distance from place i of an axis to the next one, pixels.
  double pitch(int axis, int32_t i) const {
    const int32_t* at = twice_at[static_cast<size_t>(axis)].data() + i;
    return (at[1] - at[0]) / 2.0;
  }
};

Surroundings surroundings_of(const BlockGrid& grid, const FieldView& view) {
  Surroundings out;
  for (size_t axis = 0; axis < 3; ++axis) {
    const FieldAxis& blocks = view.axes[axis];
    std::vector<int32_t>& at = out.twice_at[axis];
    for (int32_t i = 0; i < blocks.count; ++i) at.push_back(blocks.twice_centre(i));
    if (grid.image[static_cast<int>(axis)] == 1) continue;
    const size_t last = at.size() - 1;
    const int32_t before = last == 0 ? 2 * blocks.block : at[1] - at[0];
    const int32_t after = last == 0 ? before : at[last] - at[last - 1];
    at.push_back(at[last] + after);
    at.insert(at.begin(), at[0] - before);
  }
  for (const int32_t z : out.twice_at[2]) {
    for (const int32_t y : out.twice_at[1]) {
      for (const int32_t x : out.twice_at[0]) {
        const FieldSum sum = field_sum_at_half(view, {x, y, z});
        const auto whole = static_cast<double>(sum.whole << kVectorBits);
        out.vectors.push_back(Vec3l{sum.of[0], sum.of[1], sum.of[2]}.cast<double>() / whole);
      }
    }
  }
  return out;
}

/// Returns the least Jacobian at the corners of the cell that begins at `first`.
double least_of_cell(const Surroundings& around, const Vec3i& first) {
  double least = 1e300;
  for (int corner = 0; corner < 8; ++corner) {
    Vec3i here = first;
    for (int axis = 0; axis < 3; ++axis) {
      if (!around.is_flat(axis)) here[axis] += (corner >> axis) & 1;
    }
    std::array<Vec3d, 3> columns{Vec3d{1, 0, 0}, Vec3d{0, 1, 0}, Vec3d{0, 0, 1}};
    for (int axis = 0; axis < 3; ++axis) {
      if (around.is_flat(axis)) continue;
      Vec3i low = here, high = here;
      low[axis] = first[axis];
      high[axis] = first[axis] + 1;
      columns[static_cast<size_t>(axis)] +=
          (around.at(high) - around.at(low)) / around.pitch(axis, first[axis]);
    }
    least = std::min(least, dot(columns[0], cross(columns[1], columns[2])));
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

void find_field_in_box(const FieldView& view, const Vec3i& first, const Vec3i& size,
                       std::vector<Vec3i>& out) {
  const bool is_one = view.axes[0].count * view.axes[1].count * view.axes[2].count == 1;
  if (view.vectors == nullptr || (is_one && view.border == BorderField::kClamp)) {
    const size_t pixels =
        static_cast<size_t>(size.x) * static_cast<size_t>(size.y) * static_cast<size_t>(size.z);
    out.assign(pixels, units_at(view, {}, {}, {}));
    return;
  }
  out.clear();
  const auto has_all_pixels = [](const FieldAxis& axis) {
    return axis.twice_centre(axis.count - 1) == 2 * (axis.count - 1);
  };
  if (std::all_of(view.axes, view.axes + 3, has_all_pixels)) {
    for (int32_t row = 0; row < size.y * size.z; ++row) {
      const int64_t y = first.y + row % size.y, z = first.z + row / size.y;
      const Vec3i* there = view.vectors + (z * view.axes[1].count + y) * view.axes[0].count;
      for (int32_t x = first.x; x < first.x + size.x; ++x) out.push_back(units_of(there[x]));
    }
    return;
  }
  std::vector<AxisWeights> columns;
  columns.reserve(static_cast<size_t>(size.x));
  for (int32_t x = 0; x < size.x; ++x) {
    columns.push_back(axis_weights(view.axes[0], view.border, first.x + x));
  }
  for (int32_t z = 0; z < size.z; ++z) {
    const AxisWeights wz = axis_weights(view.axes[2], view.border, first.z + z);
    for (int32_t y = 0; y < size.y; ++y) {
      const AxisWeights wy = axis_weights(view.axes[1], view.border, first.y + y);
      for (const AxisWeights& wx : columns) out.push_back(units_at(view, wx, wy, wz));
    }
  }
}

std::vector<Vec3i> vectors_at(const BlockGrid& to, const BlockGrid& from,
                              std::span<const Vec3i> vectors, BorderField border) {
  const FieldGrid places = make_field_grid(from, Device::cpu());
  const FieldView view = places.view(vectors.data(), border);
  std::vector<Vec3i> out;
  out.reserve(static_cast<size_t>(to.blocks()));
  for (int32_t block = 0; block < to.blocks(); ++block) {
    out.push_back(field_q16(field_sum_at_half(view, to.twice_centre(block))));
  }
  return out;
}

FieldShape shape_of_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                          BorderField border) {
  FieldShape shape;
  for (const Vec3i& v : vectors) {
    const double length = norm(v.cast<double>()) / (1 << kVectorBits);
    shape.mean_px += length / static_cast<double>(vectors.size());
    shape.longest_px = std::max(shape.longest_px, length);
  }
  const FieldGrid places = make_field_grid(grid, Device::cpu());
  const Surroundings around = surroundings_of(grid, places.view(vectors.data(), border));
  const auto cells = [&](int axis) { return std::max(around.count(axis) - 1, 1); };
  shape.least_jacobian = 1e300;
  for (int32_t k = 0; k < cells(2); ++k) {
    for (int32_t j = 0; j < cells(1); ++j) {
      for (int32_t i = 0; i < cells(0); ++i) {
        shape.least_jacobian = std::min(shape.least_jacobian, least_of_cell(around, {i, j, k}));
      }
    }
  }
  return shape;
}

}  // namespace larch::dsa
