// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/spline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/field/spline_math.h"

namespace larch::dsa {
namespace {

/// Fraction bits of the filter that makes a spline go through its nodes.
constexpr int kFilterBits = 30;
/// Beyond so many nodes the filter has no weight left.
constexpr int kFilterReach = 16;

/// Weights for a fraction of the distance of nodes, Q20.
NodeWeights node_weights(int32_t first, int64_t fraction) {
  constexpr int64_t kOne = int64_t{1} << kSplineWeightBits;
  constexpr int64_t kSixth = 6 * kOne * kOne;
  const int64_t f = fraction, g = kOne - fraction;
  const int64_t before = (g * g * g + kSixth / 2) / kSixth;
  const int64_t at =
      (4 * kOne * kOne * kOne - 6 * f * f * kOne + 3 * f * f * f + kSixth / 2) / kSixth;
  const int64_t last = (f * f * f + kSixth / 2) / kSixth;
  const int64_t after = kOne - before - at - last;
  return {first,
          {static_cast<int32_t>(before), static_cast<int32_t>(at), static_cast<int32_t>(after),
           static_cast<int32_t>(last)}};
}

/// Returns the inverse of the filter 1/6, 4/6, 1/6 that a cubic B-spline is at its nodes: sqrt(3)
/// z^|k| with z = sqrt(3) - 2. By distance; the sum of all is 2^kFilterBits.
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
  SplineAxis(const BlockGrid& grid, int axis) : blocks_(grid.count[axis]) {
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
      const int64_t fraction = ((at - node * length) << kSplineWeightBits) / length;
      pixels_.push_back(node_weights(static_cast<int32_t>(node) - 1 + beyond_, fraction));
    }
  }
  int32_t blocks() const { return blocks_; }
  int32_t nodes() const { return blocks_ + 2 * beyond_; }
  /// By pixel.
  const std::vector<NodeWeights>& weights() const { return pixels_; }

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
    if (inside == node) return nearest;
    const int32_t inner = std::clamp(inside + (node < 0 ? 1 : -1), 0, blocks_ - 1);
    return nearest * int64_t{2} - values[inner * stride];
  }

  int32_t blocks_, beyond_ = 0;
  std::vector<NodeWeights> pixels_{};
};

/// Returns the spline through the vectors of one frame: coefficients by node, x fastest, Q24.
std::vector<Vec3l> coefficients_of(const std::array<SplineAxis, 2>& axes,
                                   std::span<const Vec3i> vectors) {
  const auto filter = through_nodes();
  std::vector<Vec3l> coefficients;
  for (const Vec3i& v : vectors) {
    coefficients.push_back(v.cast<int64_t>() * (int64_t{1} << kSplineMoreBits));
  }
  int64_t stride = 1;
  for (const SplineAxis& along : axes) {
    const auto lines = static_cast<int64_t>(coefficients.size()) / along.blocks();
    std::vector<Vec3l> next(static_cast<size_t>(lines * along.nodes()));
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t outer = line / stride, inner = line % stride;
      along.find_coefficients(coefficients.data() + outer * along.blocks() * stride + inner, stride,
                              next.data() + outer * along.nodes() * stride + inner, filter);
    }
    coefficients = std::move(next);
    stride *= along.nodes();
  }
  return coefficients;
}

}  // namespace

namespace cpu {

void spline_field(const SplineJob& job, const Context& context) {
  const Vec3i& size = job.size;
  const int64_t nodes = static_cast<int64_t>(job.nodes[0]) * job.nodes[1];
  parallel_for(context.threads, job.frames * size.y, 16, [&](int64_t begin, int64_t end) {
    std::vector<Vec3l> of_row(static_cast<size_t>(job.nodes[0]));
    for (int64_t row = begin; row < end; ++row) {
      const Vec3l* of_frame = job.coefficients + row / size.y * nodes;
      for (int32_t i = 0; i < job.nodes[0]; ++i) {
        of_row[static_cast<size_t>(i)] =
            spline_node(job, of_frame, i, static_cast<int32_t>(row % size.y));
      }
      for (int32_t x = 0; x < size.x; ++x) {
        const NodeWeights& wx = job.weights[0][x];
        job.vectors[row * size.x + x] =
            spline_vector(weighted_nodes(wx, of_row.data() + wx.first, 1));
      }
    }
  });
}

void least_jacobians(const JacobianJob& job, const Context& context) {
  const int64_t pixels = static_cast<int64_t>(job.size.x) * job.size.y;
  parallel_for_each(context.threads, job.frames * job.columns(), 16, [&](int64_t i) {
    job.least[i] = least_jacobian_of_column(job.size, job.vectors + i / job.columns() * pixels,
                                            static_cast<int32_t>(i % job.columns()));
  });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const SplineJob&, const Context&)> kSplineField{
    "dsa::spline_field", cpu::spline_field, LARCH_CUDA_FN(cuda::spline_field)};
constexpr Dispatch<void(const JacobianJob&, const Context&)> kMinimumJacobians{
    "dsa::least_jacobians", cpu::least_jacobians, LARCH_CUDA_FN(cuda::least_jacobians)};

}  // namespace

BlockGrid pixel_grid(const Vec3i& size) {
  return make_block_grid(size, {1, 1, 1}, {1, 1, 1});
}

Buffer<Vec3i> spline_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                           const Context& context) {
  const auto blocks = static_cast<size_t>(std::max<int64_t>(grid.blocks(), 1));
  const std::array<SplineAxis, 2> axes{SplineAxis(grid, 0), SplineAxis(grid, 1)};
  const size_t frames = vectors.size() / blocks;
  const auto nodes = static_cast<size_t>(axes[0].nodes()) * static_cast<size_t>(axes[1].nodes());
  std::vector<Vec3l> coefficients(frames * nodes);
  parallel_for_each(context.threads, static_cast<int64_t>(frames), 1, [&](size_t f) {
    const auto of_frame = coefficients_of(axes, vectors.subspan(f * blocks, blocks));
    std::copy(of_frame.begin(), of_frame.end(),
              coefficients.begin() + static_cast<ptrdiff_t>(f * nodes));
  });
  const Device& device = context.device;
  const Vec3i& size = grid.image;
  SplineJob job;
  job.size = size;
  job.frames = static_cast<int64_t>(frames);
  std::array<Buffer<NodeWeights>, 2> weights;
  for (size_t a = 0; a < 2; ++a) {
    weights[a] = Buffer<NodeWeights>(device, std::span<const NodeWeights>(axes[a].weights()));
    job.weights[a] = weights[a].data();
    job.nodes[a] = axes[a].nodes();
  }
  const Buffer<Vec3l> on_device(device, std::span<const Vec3l>(coefficients));
  Buffer<Vec3i> out(device, static_cast<size_t>(job.frames * size.x * size.y));
  job.coefficients = on_device.data();
  job.vectors = out.data();
  kSplineField(device, job, context);
  return out;
}

std::vector<double> least_jacobians(const Vec3i& size, const Buffer<Vec3i>& vectors,
                                    const Context& context) {
  JacobianJob job;
  job.size = size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y;
  job.frames = static_cast<int64_t>(vectors.size()) / pixels;
  job.vectors = vectors.data();
  Buffer<double> least(context.device, static_cast<size_t>(job.frames * job.columns()));
  job.least = least.data();
  kMinimumJacobians(context.device, job, context);
  const std::vector<double> by_column = least.to_vector();
  std::vector<double> out;
  for (auto at = by_column.begin(); at != by_column.end(); at += job.columns()) {
    out.push_back(*std::min_element(at, at + job.columns()));
  }
  return out;
}

}  // namespace larch::dsa
