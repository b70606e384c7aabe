// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/image/integral.h"

namespace larch::image::cuda {
namespace {

constexpr int kWarp = 32;

__global__ void pyramid_kernel(VolumeView<const int16_t> fine, VolumeView<int16_t> coarse) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y, z = blockIdx.z;
  if (x < coarse.size.x) coarse({x, y, z}) = pyramid_voxel(fine, x, y, z);
}

/// One warp a row: pads, computes the channel and integrates along x. Row (y, z) of the padded
/// channel goes to corner row (y + 1, z + 1); corner rows 0 are cleared by the caller.
__global__ void rows_kernel(VolumeView<const int16_t> voxels, ChannelKind kind, Padding padding,
                            IntegralLayout layout, uint32_t* out) {
  const int rows_y = voxels.size.y + 2 * layout.pad;
  const int columns = voxels.size.x + 2 * layout.pad;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const int y = static_cast<int>(row % rows_y), z = static_cast<int>(row / rows_y);
  if (z >= voxels.size.z + 2 * layout.pad) return;
  uint32_t* line = out + layout.offset + layout.linear_offset(0, y + 1, z + 1);
  if (lane == 0) line[0] = 0;
  uint32_t carry = 0;
  for (int begin = 0; begin < columns; begin += kWarp) {
    const int x = begin + lane;
    uint32_t sum = 0;
    if (x < columns) {
      sum = static_cast<uint32_t>(padded_channel_value(voxels, kind, padding, x - layout.pad,
                                                       y - layout.pad, z - layout.pad));
    }
    for (int step = 1; step < kWarp; step *= 2) {
      const uint32_t before = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += before;
    }
    if (x < columns) line[x + 1] = carry + sum;
    carry += __shfl_sync(0xffffffffu, sum, kWarp - 1);
  }
}

/// Adds up `count` lines that are `stride` elements apart; one thread an element of a line, so that
/// neighbouring threads touch neighbouring elements. `group` lines of lines are `group_stride`
/// apart.
__global__ void accumulate_kernel(uint32_t* data, int64_t width, int count, int64_t stride,
                                  int64_t group_stride) {
  const int64_t x = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= width) return;
  uint32_t* at = data + blockIdx.y * group_stride + x;
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i, at += stride) {
    sum += *at;
    *at = sum;
  }
}

unsigned blocks_for(int64_t items, int per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

void integrate_channel(const VolumeView<const int16_t>& voxels, ChannelKind kind, Padding padding,
                       const IntegralLayout& layout, uint32_t* out) {
  uint32_t* base = out + layout.offset;
  const int64_t plane = static_cast<int64_t>(layout.stride_size.x) * layout.stride_size.y;
  const Vec3i padded = voxels.size + Vec3i{2 * layout.pad, 2 * layout.pad, 2 * layout.pad};
  // Corner planes and rows at 0; the rest is written by the kernels.
  LARCH_CUDA_CHECK(cudaMemsetAsync(base, 0, static_cast<size_t>(plane) * sizeof(uint32_t)));
  LARCH_CUDA_CHECK(cudaMemset2DAsync(base + plane, static_cast<size_t>(plane) * sizeof(uint32_t), 0,
                                     static_cast<size_t>(layout.stride_size.x) * sizeof(uint32_t),
                                     static_cast<size_t>(padded.z)));
  constexpr int kThreads = 256;
  const int64_t rows = static_cast<int64_t>(padded.y) * padded.z;
  rows_kernel<<<blocks_for(rows, kThreads / kWarp), kThreads>>>(voxels, kind, padding, layout, out);
  larch::cuda::check_launch("rows_kernel");
  const int64_t width = padded.x + 1;
  accumulate_kernel<<<dim3(blocks_for(width, 128), static_cast<unsigned>(padded.z)), 128>>>(
      base + plane, width, padded.y + 1, layout.stride_size.x, plane);
  larch::cuda::check_launch("accumulate_kernel along y");
  accumulate_kernel<<<dim3(blocks_for(plane, 128), 1), 128>>>(base, plane, padded.z + 1, plane, 0);
  larch::cuda::check_launch("accumulate_kernel along z");
}

}  // namespace

void integrate(const IntegrateJob& job) {
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  int levels = 0;
  for (const ChannelSpec& channel : job.channels) levels = std::max(levels, channel.level);
  std::vector<Buffer<int16_t>> pyramid;
  std::vector<VolumeView<const int16_t>> views;
  pyramid.emplace_back(
      device, std::span<const int16_t>(job.voxels.data, static_cast<size_t>(job.voxels.voxels())));
  views.push_back({pyramid[0].data(), job.voxels.size});
  for (int level = 1; level <= levels; ++level) {
    const VolumeView<const int16_t> fine = views.back();
    const Vec3i size = pyramid_size(fine.size);
    pyramid.emplace_back(device, static_cast<size_t>(size.x) * static_cast<size_t>(size.y) *
                                     static_cast<size_t>(size.z));
    const dim3 grid(blocks_for(size.x, 64), static_cast<unsigned>(size.y),
                    static_cast<unsigned>(size.z));
    pyramid_kernel<<<grid, 64>>>(fine, VolumeView<int16_t>{pyramid.back().data(), size});
    larch::cuda::check_launch("pyramid_kernel");
    views.push_back({pyramid.back().data(), size});
  }
  for (size_t c = 0; c < job.channels.size(); ++c) {
    integrate_channel(views[static_cast<size_t>(job.channels[c].level)], job.channels[c].kind,
                      job.padding, job.layouts[c], job.out);
  }
  LARCH_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace larch::image::cuda
