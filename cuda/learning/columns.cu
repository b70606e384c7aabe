// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/learning/columns.cuh"

namespace larch::learning::cuda {
namespace {

constexpr int kGroup = 32;

/// Undoes linear_offset of a corner within the padding, relative to corner (-pad, -pad, -pad).
Vec3i padded_corner(int32_t offset, const image::IntegralLayout& layout) {
  const int64_t row = layout.stride_size.x, plane = row * layout.stride_size.y;
  const int64_t at = offset + layout.pad * (1 + row + plane);
  return {static_cast<int>(at % row), static_cast<int>(at / row % layout.stride_size.y),
          static_cast<int>(at / plane)};
}

/// Lays out the columns of one channel.
class PlanWriter {
 public:
  PlanWriter(const FeaturePool& pool, std::span<const uint32_t> features)
      : pool_(pool), features_(features) {}

  const PoolFeature& feature(uint32_t i) const {
    return pool_.host[features_.empty() ? i : features_[i]];
  }

  void add_channel(int channel, std::span<const uint32_t> members) {
    const image::IntegralLayout& layout = pool_.layouts[static_cast<size_t>(channel)];
    ChannelColumns out;
    out.channel = channel;
    out.first_group = static_cast<int32_t>(groups.size());
    out.row_stride = layout.stride_size.x;
    out.plane_stride = out.row_stride * layout.stride_size.y;
    Vec3i low{INT32_MAX, INT32_MAX, INT32_MAX}, high{0, 0, 0};
    for (const uint32_t i : members) {
      for (const features::LinearTap& tap : taps_of(i)) {
        const Vec3i c = padded_corner(tap.offset, layout);
        low = {std::min(low.x, c.x), std::min(low.y, c.y), std::min(low.z, c.z)};
        high = {std::max(high.x, c.x), std::max(high.y, c.y), std::max(high.z, c.z)};
      }
    }
    out.extent = high - low + Vec3i{1, 1, 1};
    out.first_element =
        layout.linear_offset(low.x - layout.pad, low.y - layout.pad, low.z - layout.pad);
    for (size_t first = 0; first < members.size(); first += kColumns) {
      const auto some = members.subspan(first, std::min<size_t>(kColumns, members.size() - first));
      for (size_t g = 0; g < kColumns; g += kGroup) {
        add_group(some.subspan(std::min(g, some.size()),
                               std::min<size_t>(kGroup, some.size() - std::min(g, some.size()))),
                  layout, low, out.extent);
      }
    }
    out.end_group = static_cast<int32_t>(groups.size());
    channels.push_back(out);
  }

  std::vector<Column> columns;
  std::vector<ColumnGroup> groups;
  std::vector<features::LinearTap> staged, direct;
  std::vector<ChannelColumns> channels;

 private:
  std::span<const features::LinearTap> taps_of(uint32_t i) const {
    const PoolFeature& f = feature(i);
    return std::span<const features::LinearTap>(pool_.host_taps)
        .subspan(static_cast<size_t>(f.first_tap), f.n_tap);
  }

  void add_group(std::span<const uint32_t> members, const image::IntegralLayout& layout,
                 const Vec3i& low, const Vec3i& extent) {
    ColumnGroup group;
    group.first_tap = static_cast<int32_t>(staged.size());
    for (const uint32_t i : members) {
      const PoolFeature& f = feature(i);
      columns.push_back({i, f.n_tap, f.cost_units, f.codes});
      group.n_tap = std::max<int32_t>(group.n_tap, f.n_tap);
    }
    columns.resize(columns.size() + kGroup - members.size());
    const size_t all = static_cast<size_t>(group.n_tap) * kGroup;
    staged.resize(staged.size() + all, features::LinearTap{0, 0});
    direct.resize(direct.size() + all, features::LinearTap{0, 0});
    for (size_t lane = 0; lane < members.size(); ++lane) {
      const auto taps = taps_of(members[lane]);
      for (size_t k = 0; k < taps.size(); ++k) {
        const Vec3i c = padded_corner(taps[k].offset, layout) - low;
        const size_t at = static_cast<size_t>(group.first_tap) + k * kGroup + lane;
        staged[at] = {c.x + extent.x * (c.y + extent.y * c.z), taps[k].weight};
        direct[at] = taps[k];
      }
    }
    groups.push_back(group);
  }

  const FeaturePool& pool_;
  std::span<const uint32_t> features_;
};

// ---- codes ----

constexpr int kCodeThreads = 512;
constexpr int kCodeWarps = kCodeThreads / 32;

struct CodesJob {
  const Column* columns;
  const ColumnGroup* groups;
  const features::LinearTap* taps;
  Places places;
  ChannelColumns channel;
  uint8_t* matrix;
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
  __shared__ int64_t bases[kSamples];
  const ChannelColumns& channel = job.channel;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSamples;
  const int count = static_cast<int>(min(job.places.selected - first, int64_t{kSamples}));
  if (threadIdx.x < kSamples) {
    const int s = min(static_cast<int>(threadIdx.x), count - 1);
    bases[threadIdx.x] =
        job.places.bases[channel.channel * job.places.sample_count + job.places.index[first + s]];
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
    const Column column = job.columns[c];
    uint32_t sum[kSamples] = {};
    const features::LinearTap* taps = job.taps + group.first_tap + lane;
#pragma unroll 4
    for (int k = 0; k < group.n_tap; ++k) {
      const features::LinearTap tap = taps[32 * k];
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
    uint8_t* out =
        job.matrix + ((c / kColumns) * job.places.selected + first) * kColumns + c % kColumns;
#pragma unroll
    for (int s = 0; s < kSamples; ++s) {
      if (s >= count) break;
      out[s * kColumns] =
          column.feature == kNoFeature
              ? 0
              : static_cast<uint8_t>(code_of(column.codes, static_cast<int32_t>(sum[s])));
    }
  }
}

template <int kSamples, bool kStaged>
void launch_codes(const CodesJob& job, size_t bytes) {
  const auto blocks = static_cast<unsigned>((job.places.selected + kSamples - 1) / kSamples);
  const int groups = job.channel.end_group - job.channel.first_group;
  constexpr unsigned kEnoughBlocks = 1024;
  const unsigned parts =
      std::clamp<unsigned>((kEnoughBlocks + blocks - 1) / blocks, 1u,
                           std::max(1u, static_cast<unsigned>(groups) / (4 * kCodeWarps)));
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(codes_kernel<kSamples, kStaged>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
  codes_kernel<kSamples, kStaged><<<dim3(blocks, parts), kCodeThreads, bytes>>>(job);
  larch::cuda::check_launch("codes_kernel");
}

// ---- zoom ----

constexpr int kZoomWarps = 16;

/// grid.x: blocks of columns; grid.y: nodes. Smallest and largest code of each column, then its
/// bins. A lane holds four neighbouring columns, a warp every sixteenth row.
__global__ void __launch_bounds__(32 * kZoomWarps)
    zoom_kernel(uint8_t* matrix, int64_t row_count, const NodeRows* nodes, BinMap* maps) {
  __shared__ uint32_t lows[kZoomWarps][32], highs[kZoomWarps][32];
  const NodeRows rows = nodes[blockIdx.y];
  auto* block =
      reinterpret_cast<uint32_t*>(matrix + (blockIdx.x * row_count + rows.first) * kColumns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  uint32_t low = 0xffffffffu, high = 0;
#pragma unroll 4
  for (int64_t k = warp; k < rows.count; k += kZoomWarps) {
    const uint32_t codes = block[k * 32 + lane];
    low = __vminu4(low, codes);
    high = __vmaxu4(high, codes);
  }
  lows[warp][lane] = low;
  highs[warp][lane] = high;
  __syncthreads();
  for (int w = 0; w < kZoomWarps; ++w) {
    low = __vminu4(low, lows[w][lane]);
    high = __vmaxu4(high, highs[w][lane]);
  }
  BinMap map[4];
  for (int j = 0; j < 4; ++j) {
    map[j] = make_bin_map(low >> (8 * j) & 255, high >> (8 * j) & 255);
    if (warp == 0) {
      const int64_t of_node = static_cast<int64_t>(blockIdx.y) * gridDim.x;
      maps[(of_node + blockIdx.x) * kColumns + lane * 4 + j] = map[j];
    }
  }
#pragma unroll 4
  for (int64_t k = warp; k < rows.count; k += kZoomWarps) {
    const uint32_t codes = block[k * 32 + lane];
    uint32_t bins = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) bins |= bin_of(map[j], codes >> (8 * j) & 255) << (8 * j);
    block[k * 32 + lane] = bins;
  }
}

}  // namespace

ColumnPlan make_column_plan(const FeaturePool& pool, std::span<const uint32_t> features,
                            const Device& device) {
  PlanWriter writer(pool, features);
  std::vector<uint32_t> order(features.empty() ? pool.host.size() : features.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&writer](uint32_t a, uint32_t b) {
    const PoolFeature &f = writer.feature(a), &g = writer.feature(b);
    return f.channel != g.channel ? f.channel < g.channel : f.n_tap < g.n_tap;
  });
  for (size_t begin = 0; begin < order.size();) {
    const uint16_t channel = writer.feature(order[begin]).channel;
    size_t end = begin;
    while (end < order.size() && writer.feature(order[end]).channel == channel) ++end;
    writer.add_channel(channel, std::span<const uint32_t>(order).subspan(begin, end - begin));
    begin = end;
  }
  ColumnPlan plan;
  plan.columns = Buffer<Column>(device, std::span<const Column>(writer.columns));
  plan.groups = Buffer<ColumnGroup>(device, std::span<const ColumnGroup>(writer.groups));
  using Taps = std::span<const features::LinearTap>;
  plan.staged_taps = Buffer<features::LinearTap>(device, Taps(writer.staged));
  plan.direct_taps = Buffer<features::LinearTap>(device, Taps(writer.direct));
  plan.channels = std::move(writer.channels);
  plan.block_count = static_cast<int64_t>(writer.columns.size()) / kColumns;
  return plan;
}

void fill_codes(const ColumnPlan& plan, const Places& places, uint8_t* matrix,
                const Device& device) {
  int limit = 0;
  LARCH_CUDA_CHECK(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  for (const ChannelColumns& channel : plan.channels) {
    CodesJob job{
        plan.columns.data(), plan.groups.data(), plan.staged_taps.data(), places, channel, matrix};
    const size_t part = static_cast<size_t>(channel.extent.x) *
                        static_cast<size_t>(channel.extent.y) *
                        static_cast<size_t>(channel.extent.z) * sizeof(uint32_t);
    const size_t half = (static_cast<size_t>(limit) - 2048) / 2;  // two blocks share a processor
    if (4 * part <= half) {
      launch_codes<4, true>(job, 4 * part);
    } else if (2 * part <= half) {
      launch_codes<2, true>(job, 2 * part);
    } else if (part + 1024 <= static_cast<size_t>(limit)) {
      launch_codes<1, true>(job, part);
    } else {
      job.taps = plan.direct_taps.data();
      launch_codes<4, false>(job, 0);
    }
  }
}

void zoom_codes(const ColumnPlan& plan, const Buffer<NodeRows>& nodes, int64_t row_count,
                uint8_t* matrix, BinMap* maps) {
  const dim3 grid(static_cast<unsigned>(plan.block_count), static_cast<unsigned>(nodes.size()));
  zoom_kernel<<<grid, 32 * kZoomWarps>>>(matrix, row_count, nodes.data(), maps);
  larch::cuda::check_launch("zoom_kernel");
}

}  // namespace larch::learning::cuda
