// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/spline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field_math.h"

namespace larch::dsa {
namespace {

/// Fraction bits of the weights of four neighbouring nodes, of the filter that makes a spline go
/// through its nodes, and of coefficients beside those of vectors.
constexpr int kWeightBits = 20, kFilterBits = 30, kMoreBits = 8;
/// Beyond so many nodes the filter has no weight left.
constexpr int kFilterReach = 16;

int64_t rounded_shift(int64_t value, int bits) {
  return (value + (int64_t{1} << (bits - 1))) >> bits;
}

/// Weights of the nodes before, at, after and after next for a fraction of their distance.
struct NodeWeights {
  int32_t first = 0;  ///< index of the node before
  std::array<int64_t, 4> w{};
};
NodeWeights node_weights(int32_t first, int64_t fraction) {
  constexpr int64_t kOne = int64_t{1} << kWeightBits;
  constexpr int64_t kSixth = 6 * kOne * kOne;
  const int64_t f = fraction, g = kOne - fraction;
  NodeWeights out{first, {}};
  out.w[0] = (g * g * g + kSixth / 2) / kSixth;
  out.w[1] = (4 * kOne * kOne * kOne - 6 * f * f * kOne + 3 * f * f * f + kSixth / 2) / kSixth;
  out.w[3] = (f * f * f + kSixth / 2) / kSixth;
  out.w[2] = kOne - out.w[0] - out.w[1] - out.w[3];
  return out;
}

/// The inverse of the filter 1/6, 4/6, 1/6 that a cubic B-spline is at its nodes: sqrt(3) z^|k|
/// with z = sqrt(3) - 2. By distance; the sum of all is 2^kFilterBits.
std::array<int64_t, kFilterReach + 1> through_nodes() {
  std::array<int64_t, kFilterReach + 1> filter{};
  double weight = std::sqrt(3.0);
  int64_t others = 0;
  for (size_t k = 1; k < filter.size(); ++k) {
    weight *= std::sqrt(3.0) - 2;
    filter[k] = std::llround(std::ldexp(weight, kFilterBits));
    others += 2 * filter[k];
  }
  filter[0] = (int64_t{1} << kFilterBits) - others;
  return filter;
}

/// Nodes along an axis, with those that continue them beyond the outermost centres.
class SplineAxis {
 public:
  SplineAxis(const BlockGrid& grid, int axis, BorderField border)
      : border_(border), blocks_(grid.count[axis]) {
    const auto& starts = grid.starts[static_cast<size_t>(axis)];
    const int64_t first = 2 * int64_t{starts.front()} + grid.block[axis] - 1;
    const int64_t steps = std::max(blocks_ - 1, 1);
    const int64_t length =
        blocks_ > 1 ? 2 * int64_t{starts.back() - starts.front()} : 2 * int64_t{grid.block[axis]};
    const int64_t last = grid.image[axis] - 1;
    const int64_t before = floor_quotient(-first * steps, length);
    const int64_t after = floor_quotient((2 * last - first) * steps, length);
    beyond_ = static_cast<int32_t>(std::max(1 - before, after + 3 - blocks_));
    for (int64_t x = 0; x <= last; ++x) {
      const int64_t at = (2 * x - first) * steps, node = floor_quotient(at, length);
      const int64_t fraction = ((at - node * length) << kWeightBits) / length;
      pixels_.push_back(node_weights(static_cast<int32_t>(node) - 1 + beyond_, fraction));
    }
  }
  int32_t blocks() const { return blocks_; }
  int32_t nodes() const { return blocks_ + 2 * beyond_; }
  const NodeWeights& at(int32_t pixel) const { return pixels_[static_cast<size_t>(pixel)]; }

  /// Coefficients of a spline through `values` of the blocks, `stride` apart, and those that go on
  /// from them. `out`: as far apart.
  void find_coefficients(const Vec3l* values, int64_t stride, Vec3l* out,
                         const std::array<int64_t, kFilterReach + 1>& filter) const {
    for (int32_t node = 0; node < nodes(); ++node) {
      Vec3l sum{};
      for (int k = -kFilterReach; k <= kFilterReach; ++k) {
        sum += continued(values, stride, node - beyond_ + k) *
               filter[static_cast<size_t>(std::abs(k))];
      }
      for (int c = 0; c < 3; ++c) out[node * stride][c] = rounded_shift(sum[c], kFilterBits);
    }
  }

 private:
  Vec3l continued(const Vec3l* values, int64_t stride, int32_t node) const {
    const int32_t inside = std::clamp(node, 0, blocks_ - 1);
    const Vec3l nearest = values[inside * stride];
    if (inside == node || border_ == BorderField::kClamp) return nearest;
    if (border_ == BorderField::kZero) return {};
    const int32_t inner = std::clamp(inside + (node < 0 ? 1 : -1), 0, blocks_ - 1);
    return nearest * int64_t{2} - values[inner * stride];
  }

  BorderField border_;
  int32_t blocks_, beyond_ = 0;
  std::vector<NodeWeights> pixels_{};
};

/// The spline of one frame: coefficients by node, x fastest, in Q(16 + kMoreBits).
class Spline {
 public:
  Spline(const std::array<SplineAxis, 3>& axes, std::span<const Vec3i> vectors) : axes_(axes) {
    const auto filter = through_nodes();
    for (const Vec3i& v : vectors)
      coefficients_.push_back(v.cast<int64_t>() * (int64_t{1} << kMoreBits));
    int64_t stride = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const SplineAxis& along = axes[static_cast<size_t>(axis)];
      const auto lines = static_cast<int64_t>(coefficients_.size()) / along.blocks();
      std::vector<Vec3l> next(static_cast<size_t>(lines * along.nodes()));
      for (int64_t line = 0; line < lines; ++line) {
        const int64_t outer = line / stride, inner = line % stride;
        along.find_coefficients(coefficients_.data() + outer * along.blocks() * stride + inner,
                                stride, next.data() + outer * along.nodes() * stride + inner,
                                filter);
      }
      coefficients_ = std::move(next);
      stride *= along.nodes();
    }
  }

  /// The vectors of a row of pixels.
  void row(int32_t y, int32_t z, std::span<Vec3i> out) const {
    const int32_t columns = axes_[0].nodes();
    const NodeWeights &wy = axes_[1].at(y), &wz = axes_[2].at(z);
    std::vector<Vec3l> nodes(static_cast<size_t>(columns));
    for (int32_t i = 0; i < columns; ++i) {
      Vec3l of_planes[4];
      for (int k = 0; k < 4; ++k) {
        const int64_t plane = int64_t{wz.first + k} * axes_[1].nodes();
        const Vec3l* at = coefficients_.data() + (plane + wy.first) * columns + i;
        of_planes[k] = weighted(wy, at, columns);
      }
      nodes[static_cast<size_t>(i)] = weighted(wz, of_planes, 1);
    }
    for (size_t x = 0; x < out.size(); ++x) {
      const NodeWeights& wx = axes_[0].at(static_cast<int32_t>(x));
      const Vec3l v = weighted(wx, nodes.data() + wx.first, 1);
      for (int c = 0; c < 3; ++c) out[x][c] = static_cast<int32_t>(rounded_shift(v[c], kMoreBits));
    }
  }

 private:
  static Vec3l weighted(const NodeWeights& weights, const Vec3l* first, int64_t stride) {
    Vec3l sum{};
    for (int k = 0; k < 4; ++k) sum += first[k * stride] * weights.w[static_cast<size_t>(k)];
    for (int c = 0; c < 3; ++c) sum[c] = rounded_shift(sum[c], kWeightBits);
    return sum;
  }

  const std::array<SplineAxis, 3>& axes_;
  std::vector<Vec3l> coefficients_{};
};

}  // namespace

BlockGrid pixel_grid(const Vec3i& size) {
  return make_block_grid(size, {1, 1, 1}, {1, 1, 1});
}

std::vector<Vec3i> spline_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                                BorderField border, const Context& context) {
  const auto blocks = static_cast<size_t>(grid.blocks());
  if (vectors.size() % blocks != 0) {
    throw UsageError("the number of vectors is not that of the blocks of all frames");
  }
  const auto axis = [&](int a) {
    // A picture has one plane, which no border is near to.
    return SplineAxis(grid, a, grid.image[a] == 1 ? BorderField::kClamp : border);
  };
  const std::array<SplineAxis, 3> axes{axis(0), axis(1), axis(2)};
  std::vector<Spline> splines;
  for (size_t first = 0; first < vectors.size(); first += blocks) {
    splines.emplace_back(axes, vectors.subspan(first, blocks));
  }
  const Vec3i& size = grid.image;
  const int64_t rows = static_cast<int64_t>(size.y) * size.z;
  const auto frames = static_cast<int64_t>(splines.size());
  std::vector<Vec3i> out(static_cast<size_t>(frames * rows * size.x));
  parallel_for(context.threads, frames * rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto width = static_cast<size_t>(size.x);
      const int64_t in_frame = row % rows;
      splines[static_cast<size_t>(row / rows)].row(
          static_cast<int32_t>(in_frame % size.y), static_cast<int32_t>(in_frame / size.y),
          std::span(out).subspan(static_cast<size_t>(row) * width, width));
    }
  });
  return out;
}

double least_jacobian_of_pixels(const Vec3i& size, std::span<const Vec3i> vectors) {
  const int64_t strides[3] = {1, size.x, static_cast<int64_t>(size.x) * size.y};
  double least = 1e300;
  for (int32_t z = 0; z < std::max(size.z - 1, 1); ++z) {
    for (int32_t y = 0; y < std::max(size.y - 1, 1); ++y) {
      for (int32_t x = 0; x < std::max(size.x - 1, 1); ++x) {
        const int64_t here = z * strides[2] + y * strides[1] + x;
        Vec3d columns[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        for (int axis = 0; axis < 3; ++axis) {
          if (size[axis] == 1) continue;
          const Vec3i d = vectors[static_cast<size_t>(here + strides[axis])] -
                          vectors[static_cast<size_t>(here)];
          columns[axis] += d.cast<double>() / static_cast<double>(1 << kVectorBits);
        }
        least = std::min(least, dot(columns[0], cross(columns[1], columns[2])));
      }
    }
  }
  return least;
}

}  // namespace larch::dsa
