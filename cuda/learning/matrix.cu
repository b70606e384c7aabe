// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/learning/matrix.cuh"

namespace larch::learning::cuda {
namespace {

constexpr int kZoomWarps = 16;

/// grid.x: blocks of columns; grid.y: nodes. Smallest and largest code of each column, then its
/// bins. A lane holds four neighbouring columns, a warp every sixteenth row.
__global__ void __launch_bounds__(32 * kZoomWarps)
    zoom_kernel(uint8_t* matrix, int64_t row_count, const NodeRows* nodes, int bins, BinMap* maps) {
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
    map[j] = make_bin_map(low >> (8 * j) & 255, high >> (8 * j) & 255, bins);
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

void zoom_codes(FeatureMatrix& matrix, const Buffer<NodeRows>& nodes, int bins, BinMap* maps) {
  const dim3 grid(static_cast<unsigned>(matrix.blocks), static_cast<unsigned>(nodes.size()));
  zoom_kernel<<<grid, 32 * kZoomWarps, 0, larch::cuda::stream_of(matrix.codes.device())>>>(
      matrix.codes.data(), static_cast<int64_t>(matrix.rows), nodes.data(), bins, maps);
  larch::cuda::check_launch("zoom_kernel");
}

}  // namespace larch::learning::cuda
