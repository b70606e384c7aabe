// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/features/linear_columns.cuh"

namespace larch::features::cuda {
namespace {

constexpr int kCodeThreads = 512;
constexpr int kCodeWarps = kCodeThreads / 32;

struct CodesJob {
  const learning::Slot* columns;
  const ColumnGroup* groups;
  const LinearTap* taps;
  Places places;
  ChannelColumns channel;
  uint8_t* matrix;
  int64_t row_count;  ///< of the matrix
};

/// An element of the integral volume around each of so many samples, read and written as one.
template <int kSamples>
struct alignas(4 * kSamples) Element {
  uint32_t of_sample[kSamples];
};

/// Copies the part of the integral volume around each sample to shared memory.
template <int kSamples>
__device__ void stage(const CodesJob& job, const int64_t* bases, Element<kSamples>* part) {
  const ChannelColumns& channel = job.channel;
  const int words = channel.extent.x * channel.extent.y * channel.extent.z;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kCodeThreads) {
    const int x = i % channel.extent.x, yz = i / channel.extent.x;
    const int y = yz % channel.extent.y, z = yz / channel.extent.y;
    const int64_t at =
        channel.first_element + x + channel.row_stride * y + channel.plane_stride * z;
    Element<kSamples> element;
#pragma unroll
    for (int s = 0; s < kSamples; ++s) element.of_sample[s] = job.places.integral[bases[s] + at];
    part[i] = element;
  }
}

/// Codes of kSamples samples for the columns of one channel. A warp takes a group of columns; its
/// lanes read their taps side by side. Staged: the part of the integral volume around each sample
/// is first copied to shared memory, where 32 scattered reads cost a few cycles, not 32; the
/// samples' elements lie side by side there, for one read to bring all of them.
template <int kSamples, bool kStaged>
__global__ void __launch_bounds__(kCodeThreads) codes_kernel(const __grid_constant__ CodesJob job) {
  extern __shared__ uint4 shared[];
  auto* part = reinterpret_cast<Element<kSamples>*>(shared);
  __shared__ int64_t bases[kSamples], rows[kSamples];
  const ChannelColumns& channel = job.channel;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSamples;
  const int count = static_cast<int>(min(job.places.selected - first, int64_t{kSamples}));
  if (threadIdx.x < kSamples) {
    const int s = min(static_cast<int>(threadIdx.x), count - 1);
    bases[threadIdx.x] =
        job.places.bases[channel.channel * job.places.sample_count + job.places.sample(first + s)];
    rows[threadIdx.x] = job.places.row(first + s);
  }
  __syncthreads();
  if (kStaged) {
    stage(job, bases, part);
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int step = static_cast<int>(gridDim.y) * kCodeWarps;
  int g = channel.first_group + static_cast<int>(blockIdx.y) * kCodeWarps +
          static_cast<int>(threadIdx.x) / 32;
  for (; g < channel.end_group; g += step) {
    const ColumnGroup group = job.groups[g];
    const int64_t c = static_cast<int64_t>(g) * 32 + lane;
    const learning::Slot column = job.columns[c];
    uint32_t sum[kSamples] = {};
    const LinearTap* taps = job.taps + group.first_tap + lane;
#pragma unroll 4
    for (int k = 0; k < group.n_tap; ++k) {
      const LinearTap tap = taps[32 * k];
      Element<kSamples> element;
      if (kStaged) {
        element = part[tap.offset];
      } else {
#pragma unroll
        for (int s = 0; s < kSamples; ++s) {
          element.of_sample[s] = job.places.integral[bases[s] + tap.offset];
        }
      }
#pragma unroll
      for (int s = 0; s < kSamples; ++s) {
        sum[s] += static_cast<uint32_t>(tap.weight) * element.of_sample[s];
      }
    }
    uint8_t* out = job.matrix + (c / kColumns) * job.row_count * kColumns + c % kColumns;
#pragma unroll
    for (int s = 0; s < kSamples; ++s) {
      if (s >= count) break;
      out[rows[s] * kColumns] =
          column.column == learning::kFilling
              ? 0
              : static_cast<uint8_t>(learning::code_of(column.codes, static_cast<int32_t>(sum[s])));
    }
  }
}

template <int kSamples, bool kStaged>
void launch_codes(const CodesJob& job, size_t bytes, const Device& device) {
  const unsigned blocks = larch::cuda::blocks_for(job.places.selected, kSamples);
  const int groups = job.channel.end_group - job.channel.first_group;
  constexpr unsigned kEnoughBlocks = 1024;
  const unsigned parts =
      std::clamp<unsigned>((kEnoughBlocks + blocks - 1) / blocks, 1u,
                           std::max(1u, static_cast<unsigned>(groups) / (4 * kCodeWarps)));
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(codes_kernel<kSamples, kStaged>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
  codes_kernel<kSamples, kStaged>
      <<<dim3(blocks, parts), kCodeThreads, bytes, larch::cuda::stream_of(device)>>>(job);
  larch::cuda::check_launch("codes_kernel");
}

constexpr int kGroup = 16;  ///< columns that a thread writes as one

/// One thread per sample and group of columns (grid.y).
__global__ void direct_kernel(const learning::Slot* slots, LinearValue value, uint8_t* matrix,
                              int64_t row_count) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= value.places.selected) return;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * kGroup;
  uint32_t words[kGroup / 4] = {};
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    const learning::Slot slot = slots[first + j];
    if (slot.column == learning::kFilling) continue;
    words[j / 4] |= learning::code_of(slot.codes, value(slot.column, k)) << (8 * (j % 4));
  }
  uint8_t* out =
      matrix + (first / kColumns * row_count + value.places.row(k)) * kColumns + first % kColumns;
  *reinterpret_cast<uint4*>(out) = make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace

void fill(const LinearFillJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<uint32_t> index(device, job.samples), rows(device, job.rows);
  Places places = on_device(job.places, index);
  const auto row_count = static_cast<int64_t>(job.matrix.rows);
  places.selected = rows.empty() ? row_count : static_cast<int64_t>(rows.size());
  places.rows = rows.data();
  if (places.selected == 0) return;
  if (const auto* direct = dynamic_cast<const DirectColumns*>(&job.prepared)) {
    constexpr int kThreads = 128;
    const dim3 grid(larch::cuda::blocks_for(places.selected, kThreads),
                    static_cast<unsigned>(direct->slots.size() / kGroup));
    const LinearColumns& columns = direct->columns;
    direct_kernel<<<grid, kThreads, 0, larch::cuda::stream_of(device)>>>(
        direct->on_device.data(),
        LinearValue{columns.device_features.data(), columns.device_taps.data(), places},
        job.matrix.codes.data(), row_count);
    larch::cuda::check_launch("direct_kernel");
    return;
  }
  const auto& plan = dynamic_cast<const WarpColumns&>(job.prepared);
  const int limit = larch::cuda::most_shared_bytes(device);
  for (const ChannelColumns& channel : plan.channels) {
    CodesJob codes{
        plan.on_device.data(),   plan.groups.data(), plan.staged_taps.data(), places, channel,
        job.matrix.codes.data(), row_count};
    const size_t part = static_cast<size_t>(channel.extent.x) *
                        static_cast<size_t>(channel.extent.y) *
                        static_cast<size_t>(channel.extent.z) * sizeof(uint32_t);
    const size_t half = (static_cast<size_t>(limit) - 2048) / 2;  // two blocks share a processor
    if (4 * part <= half) {
      launch_codes<4, true>(codes, 4 * part, device);
    } else if (2 * part <= half) {
      launch_codes<2, true>(codes, 2 * part, device);
    } else if (part + 1024 <= static_cast<size_t>(limit)) {
      launch_codes<1, true>(codes, part, device);
    } else {
      codes.taps = plan.direct_taps.data();
      launch_codes<4, false>(codes, 0, device);
    }
  }
}

}  // namespace larch::features::cuda
