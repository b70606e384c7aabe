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

/// Adds up `count` lines that are `stride` elements apart, one element of a line. Reads several
/// lines ahead of the sum, to keep the memory busy.
__device__ void accumulate(uint32_t* at, int count, int64_t stride) {
  constexpr int kAhead = 16;
  uint32_t sum = 0;
  int i = 0;
  for (; i + kAhead <= count; i += kAhead, at += kAhead * stride) {
    uint32_t line[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) line[k] = at[k * stride];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) at[k * stride] = sum += line[k];
  }
  for (; i < count; ++i, at += stride) *at = sum += *at;
}

/// One warp: a row of the padded channel, integrated along x. line[0] is the corner before it.
template <ChannelKind kind>
__device__ void integrate_row(const VolumeView<const int16_t>& voxels, Padding padding, int pad,
                              int y, int z, uint32_t* line) {
  const int lane = threadIdx.x % kWarp, columns = voxels.size.x + 2 * pad;
  if (lane == 0) line[0] = 0;
  uint32_t carry = 0;
  constexpr int kAhead = 4;
  for (int begin = 0; begin < columns; begin += kAhead * kWarp) {
    uint32_t sum[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int x = begin + k * kWarp + lane;
      sum[k] = x >= columns ? 0
                            : static_cast<uint32_t>(padded_channel_value(
                                  voxels, kind, padding, x - pad, y - pad, z - pad));
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      for (int step = 1; step < kWarp; step *= 2) {
        const uint32_t before = __shfl_up_sync(0xffffffffu, sum[k], step);
        if (lane >= step) sum[k] += before;
      }
      const int x = begin + k * kWarp + lane;
      if (x < columns) line[x + 1] = carry + sum[k];
      carry += __shfl_sync(0xffffffffu, sum[k], kWarp - 1);
    }
  }
}

/// One block a plane of the padded channel: its rows, integrated along x, then along y, while the
/// plane is still in the cache. Plane z goes to corner plane z + 1.
template <ChannelKind kind>
__global__ void __launch_bounds__(1024)
    plane_kernel(VolumeView<const int16_t> voxels, Padding padding, IntegralLayout layout,
                 uint32_t* out) {
  const int rows = voxels.size.y + 2 * layout.pad, z = static_cast<int>(blockIdx.x);
  const int64_t stride = layout.stride_size.x;
  uint32_t* plane = out + layout.offset + layout.linear_offset(0, 0, z + 1);
  const int corners = voxels.size.x + 2 * layout.pad + 1;
  const int threads = static_cast<int>(blockDim.x);
  for (int x = static_cast<int>(threadIdx.x); x < corners; x += threads) plane[x] = 0;
  for (int y = static_cast<int>(threadIdx.x) / kWarp; y < rows; y += threads / kWarp) {
    integrate_row<kind>(voxels, padding, layout.pad, y, z, plane + stride * (y + 1));
  }
  __syncthreads();
  for (int x = static_cast<int>(threadIdx.x); x < corners; x += threads) {
    accumulate(plane + stride + x, rows, stride);
  }
}

/// Adds up the planes; one thread a corner of a plane.
__global__ void planes_kernel(uint32_t* data, int64_t plane, int count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < plane) accumulate(data + i, count, plane);
}

using PlaneKernel = void (*)(VolumeView<const int16_t>, Padding, IntegralLayout, uint32_t*);
PlaneKernel plane_kernel_of(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::kIntensity:
      return plane_kernel<ChannelKind::kIntensity>;
    case ChannelKind::kGaussian:
      return plane_kernel<ChannelKind::kGaussian>;
    case ChannelKind::kGradientMagnitude:
      return plane_kernel<ChannelKind::kGradientMagnitude>;
    case ChannelKind::kLaplacian:
      return plane_kernel<ChannelKind::kLaplacian>;
    case ChannelKind::kDerivativeX:
      return plane_kernel<ChannelKind::kDerivativeX>;
    case ChannelKind::kDerivativeY:
      return plane_kernel<ChannelKind::kDerivativeY>;
    case ChannelKind::kDerivativeZ:
      return plane_kernel<ChannelKind::kDerivativeZ>;
  }
  throw UsageError("image::integrate: unknown channel");
}

unsigned blocks_for(int64_t items, int per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

void integrate_channel(const VolumeView<const int16_t>& voxels, ChannelKind kind, Padding padding,
                       const IntegralLayout& layout, uint32_t* out) {
  uint32_t* base = out + layout.offset;
  const int64_t plane = static_cast<int64_t>(layout.stride_size.x) * layout.stride_size.y;
  LARCH_CUDA_CHECK(cudaMemsetAsync(base, 0, static_cast<size_t>(plane) * sizeof(uint32_t)));
  const int planes = voxels.size.z + 2 * layout.pad;
  // A thread a column of the plane: small blocks, so that all planes are at work at once.
  const int corners = voxels.size.x + 2 * layout.pad + 1;
  const int threads = std::clamp((corners + kWarp - 1) / kWarp * kWarp, 128, 1024);
  plane_kernel_of(kind)<<<static_cast<unsigned>(planes), static_cast<unsigned>(threads)>>>(
      voxels, padding, layout, out);
  larch::cuda::check_launch("plane_kernel");
  planes_kernel<<<blocks_for(plane, 128), 128>>>(base + plane, plane, planes);
  larch::cuda::check_launch("planes_kernel");
}

}  // namespace

void integrate(const IntegrateJob& job) {
  const Device device = Device::cuda(job.device_index);
  LARCH_CUDA_CHECK(cudaSetDevice(job.device_index));
  int levels = 0;
  for (const ChannelSpec& channel : job.channels) levels = std::max(levels, channel.level);
  std::vector<Buffer<int16_t>> pyramid;
  std::vector<VolumeView<const int16_t>> views;
  views.push_back(job.voxels);
  if (!job.resident) {
    pyramid.emplace_back(device, std::span<const int16_t>(
                                     job.voxels.data, static_cast<size_t>(job.voxels.voxels())));
    views[0].data = pyramid[0].data();
  }
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
