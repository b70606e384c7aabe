// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/dsa/field/spline_math.h"

namespace larch::dsa::cuda {
namespace {

constexpr int kThreads = 128;
constexpr uint32_t kMaximumRows = 65535;  ///< of a grid, along y and z

/// A thread per pixel; rows of all frames along y, pixels along x.
__global__ void __launch_bounds__(kThreads) spline_kernel(const __grid_constant__ SplineJob job) {
  const auto x = static_cast<int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (x >= job.size.x) return;
  const int64_t nodes = static_cast<int64_t>(job.nodes[0]) * job.nodes[1];
  const NodeWeights wx = job.weights[0][x];
  for (int64_t row = blockIdx.y; row < job.frames * job.size.y; row += gridDim.y) {
    const Vec3l* of_frame = job.coefficients + row / job.size.y * nodes;
    Vec3l of_row[4];
    for (int k = 0; k < 4; ++k) {
      of_row[k] = spline_node(job, of_frame, wx.first + k, static_cast<int32_t>(row % job.size.y));
    }
    job.vectors[row * job.size.x + x] = spline_vector(weighted_nodes(wx, of_row, 1));
  }
}

/// A thread per column.
__global__ void __launch_bounds__(kThreads)
    jacobian_kernel(const __grid_constant__ JacobianJob job, int32_t columns) {
  const auto x = static_cast<int32_t>(blockIdx.x * kThreads + threadIdx.x);
  if (x >= columns) return;
  const int64_t pixels = static_cast<int64_t>(job.size.x) * job.size.y;
  for (int64_t f = blockIdx.y; f < job.frames; f += gridDim.y) {
    job.least[f * columns + x] = least_jacobian_of_column(job.size, job.vectors + f * pixels, x);
  }
}

dim3 grid_of(int32_t columns, int64_t rows) {
  return {static_cast<uint32_t>((columns + kThreads - 1) / kThreads),
          rows < kMaximumRows ? static_cast<uint32_t>(rows) : kMaximumRows, 1};
}

}  // namespace

void spline_field(const SplineJob& job, const Context& context) {
  if (job.frames == 0) return;
  spline_kernel<<<grid_of(job.size.x, job.frames * job.size.y), kThreads, 0,
                  larch::cuda::stream_for(context.device)>>>(job);
  larch::cuda::check_launch("dsa spline_kernel");
}

void least_jacobians(const JacobianJob& job, const Context& context) {
  if (job.frames == 0) return;
  jacobian_kernel<<<grid_of(job.columns(), job.frames), kThreads, 0,
                    larch::cuda::stream_for(context.device)>>>(job, job.columns());
  larch::cuda::check_launch("dsa jacobian_kernel");
}

}  // namespace larch::dsa::cuda
