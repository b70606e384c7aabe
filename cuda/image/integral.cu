// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/image/integral.h"

namespace larch::image::cuda {
namespace {

using larch::cuda::blocks_for;

constexpr int kWarp = 32;

/// Running sums of one element of `count` planes, which are `stride` elements apart. Reads several
/// planes ahead of the sum, to keep the memory busy.
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

constexpr int kPlaneWarps = 6;
constexpr int kSegments = 4;               ///< columns of a lane
constexpr int kStrip = kSegments * kWarp;  ///< columns that are integrated at a time

/// A lane's columns of a strip: the voxels they stand for, and whether they count.
struct Columns {
  int voxel[kSegments];
  bool counts[kSegments];
};

__device__ Columns columns_of(int width, Padding padding, int pad, int begin) {
  Columns c;
#pragma unroll
  for (int k = 0; k < kSegments; ++k) {
    const int x = begin + k * kWarp + static_cast<int>(threadIdx.x) % kWarp - pad;
    c.voxel[k] = clamp_index(x, width);
    c.counts[k] = x < width + pad && (repeats_border(padding) || c.voxel[k] == x);
  }
  return c;
}

/// One thread per voxel of a row: the image of a channel.
template <ChannelKind kind>
__global__ void channel_kernel(VolumeView<const int16_t> voxels, VolumeView<int32_t> image) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y, z = blockIdx.z;
  if (x < image.size.x) image({x, y, z}) = channel_value(voxels, kind, x, y, z);
}

/// padded_value of a row at a lane's columns.
template <class T>
__device__ void read_row(const VolumeView<const T>& voxels, Padding padding, const Columns& columns,
                         int y, int z, uint32_t (&value)[kSegments]) {
  const int cy = clamp_index(y, voxels.size.y), cz = clamp_index(z, voxels.size.z);
  const bool counts = repeats_border(padding) || (cy == y && cz == z);
#pragma unroll
  for (int k = 0; k < kSegments; ++k) {
    value[k] = counts && columns.counts[k]
                   ? static_cast<uint32_t>(int32_t{voxels({columns.voxel[k], cy, cz})})
                   : 0;
  }
}

/// One warp: the integral of a row, from the sums of its columns so far; what lies left of the
/// strip is in the line already.
__device__ void write_row(const uint32_t (&column)[kSegments], int begin, int columns,
                          uint32_t* line) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  uint32_t left = line[begin];
#pragma unroll
  for (int k = 0; k < kSegments; ++k) {
    uint32_t sum = column[k];
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const uint32_t before = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += before;
    }
    const int x = begin + k * kWarp + lane;
    if (x < columns) line[x + 1] = left + sum;
    left += __shfl_sync(0xffffffffu, sum, kWarp - 1);
  }
  __syncwarp();  // the next strip begins with what lane 31 wrote
}

constexpr int kUnroll = 4;       ///< rows that are read ahead
constexpr int kPlaneBlocks = 5;  ///< blocks of a processor: all planes are at work at once then

/// Adds rows [first, end) of a strip to the sums of its columns.
template <class T>
__device__ void add_rows(const VolumeView<const T>& voxels, Padding padding, const Vec3i& pad,
                         const Columns& columns, int first, int end, int z,
                         uint32_t (&column)[kSegments]) {
#pragma unroll kUnroll
  for (int y = first; y < end; ++y) {
    uint32_t value[kSegments];
    read_row(voxels, padding, columns, y - pad.y, z - pad.z, value);
#pragma unroll
    for (int k = 0; k < kSegments; ++k) column[k] += value[k];
  }
}

/// A plane of the padded channel (grid.x; grid.z: which), which goes to corner plane z + 1,
/// integrated along x and y; a block has a part of its rows (grid.y), each warp a band of them.
/// Rows are read twice: for the sums of their columns, and, once those of everything above are
/// known, to be integrated. What the first reading brought is still in the cache, and nothing that
/// was written is read again.
template <class T>
__global__ void __launch_bounds__(kPlaneWarps* kWarp, kPlaneBlocks)
    plane_kernel(const ChannelImage<T>* images, Padding padding, uint32_t* out) {
  const VolumeView<const T> voxels = images[blockIdx.z].voxels;
  const IntegralLayout layout = images[blockIdx.z].layout;
  __shared__ uint32_t above[kPlaneWarps][kStrip], bands[kPlaneWarps][kStrip];
  const int columns = voxels.size.x + 2 * layout.pad.x, rows = voxels.size.y + 2 * layout.pad.y;
  const int z = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp, lane = thread % kWarp;
  const int64_t stride = layout.stride_size.x;
  uint32_t* plane = out + layout.offset + layout.linear_offset(0, 0, z + 1);
  const int parts = static_cast<int>(gridDim.y) * kPlaneWarps;
  const int before = static_cast<int>(rows * int64_t{blockIdx.y} / gridDim.y);
  const int band = static_cast<int>(blockIdx.y) * kPlaneWarps + warp;
  const int first = static_cast<int>(int64_t{rows} * band / parts);
  const int end = static_cast<int>(int64_t{rows} * (band + 1) / parts);
  if (blockIdx.y == 0) {
    for (int x = thread; x <= columns; x += kPlaneWarps * kWarp) plane[x] = 0;
  }
  for (int y = first + lane; y < end; y += kWarp) plane[stride * (y + 1)] = 0;
  for (int begin = 0; begin < columns; begin += kStrip) {
    const Columns strip = columns_of(voxels.size.x, padding, layout.pad.x, begin);
    uint32_t column[kSegments] = {}, higher[kSegments] = {};
    add_rows(voxels, padding, layout.pad, strip, first, end, z, column);
    add_rows(voxels, padding, layout.pad, strip, before * warp / kPlaneWarps,
             before * (warp + 1) / kPlaneWarps, z, higher);
    __syncthreads();  // the sums of the strip before have been read
#pragma unroll
    for (int k = 0; k < kSegments; ++k) {
      bands[warp][k * kWarp + lane] = column[k];
      above[warp][k * kWarp + lane] = higher[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSegments; ++k) {
      column[k] = 0;
      for (int w = 0; w < kPlaneWarps; ++w) {
        column[k] += above[w][k * kWarp + lane] + (w < warp ? bands[w][k * kWarp + lane] : 0);
      }
    }
#pragma unroll 1
    for (int y = first; y < end; ++y) {
      uint32_t value[kSegments];
      read_row(voxels, padding, strip, y - layout.pad.y, z - layout.pad.z, value);
#pragma unroll
      for (int k = 0; k < kSegments; ++k) column[k] += value[k];
      write_row(column, begin, columns, plane + stride * (y + 1));
    }
  }
}

/// Adds up the planes; one thread per corner of a plane, whose lowest one is 0.
template <class T>
__global__ void planes_kernel(const ChannelImage<T>* images, uint32_t* out, int count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const IntegralLayout layout = images[blockIdx.y].layout;
  const int64_t plane = static_cast<int64_t>(layout.stride_size.x) * layout.stride_size.y;
  if (i >= plane) return;
  uint32_t* data = out + layout.offset + i;
  *data = 0;
  accumulate(data + plane, count, plane);
}

using ChannelKernel = void (*)(VolumeView<const int16_t>, VolumeView<int32_t>);
ChannelKernel channel_kernel_of(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::kIntensity:
      break;  // is integrated as it is
    default:
      break;  // a filter
    case ChannelKind::kGaussian:
      return channel_kernel<ChannelKind::kGaussian>;
    case ChannelKind::kGradientMagnitude:
      return channel_kernel<ChannelKind::kGradientMagnitude>;
    case ChannelKind::kLaplacian:
      return channel_kernel<ChannelKind::kLaplacian>;
    case ChannelKind::kDerivativeX:
      return channel_kernel<ChannelKind::kDerivativeX>;
    case ChannelKind::kDerivativeY:
      return channel_kernel<ChannelKind::kDerivativeY>;
    case ChannelKind::kDerivativeZ:
      return channel_kernel<ChannelKind::kDerivativeZ>;
  }
  throw UsageError("image::integrate: unknown channel");
}

/// Integrates images of one size, together.
template <class T>
void integrate_images(std::span<const ChannelImage<T>> images, Padding padding, uint32_t* out,
                      const Device& device) {
  if (images.empty()) return;
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const Buffer<ChannelImage<T>> there(device, images);
  const IntegralLayout& layout = images[0].layout;
  const int64_t plane = static_cast<int64_t>(layout.stride_size.x) * layout.stride_size.y;
  const int planes = images[0].voxels.size.z + 2 * layout.pad.z;
  const auto count = static_cast<unsigned>(images.size());
  // Several blocks per plane where there are few planes, so that all processors have their share.
  constexpr int kEnoughBlocks = 512;
  constexpr int kMaximumParts = 16;
  const int all = planes * static_cast<int>(count);
  const int parts = std::clamp((kEnoughBlocks + all - 1) / all, 1, kMaximumParts);
  plane_kernel<T><<<dim3(static_cast<unsigned>(planes), static_cast<unsigned>(parts), count),
                    kPlaneWarps * kWarp, 0, stream>>>(there.data(), padding, out);
  larch::cuda::check_launch("plane_kernel");
  planes_kernel<T>
      <<<dim3(blocks_for(plane, 128), count), 128, 0, stream>>>(there.data(), out, planes);
  larch::cuda::check_launch("planes_kernel");
}

}  // namespace

void make_channel(const ChannelJob& job, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  const Vec3i size = job.voxels.size;
  const dim3 grid(blocks_for(size.x, 64), static_cast<unsigned>(size.y),
                  static_cast<unsigned>(size.z));
  const ChannelKernel kernel = channel_kernel_of(job.kind);
  kernel<<<grid, 64, 0, larch::cuda::stream_of(context.device)>>>(
      job.voxels, VolumeView<int32_t>{job.out, size});
  larch::cuda::check_launch("channel_kernel");
}

void integrate(const IntegrateJob& job, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  integrate_images(job.intensities, job.padding, job.out, context.device);
  integrate_images(job.others, job.padding, job.out, context.device);
}

}  // namespace larch::image::cuda
