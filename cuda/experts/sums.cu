// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/experts/train.h"

namespace larch::experts::cuda {
namespace {

constexpr int kThreads = 288;
constexpr int kSamples = 16;  ///< that are added together
constexpr int kTile = 4;      ///< edge of the squares into which the triangle is cut
constexpr int kTileRows = kFeatures / kTile;
constexpr int kTiles = kTileRows * (kTileRows + 1) / 2;
constexpr int kOwn = (kTiles + kThreads - 1) / kThreads;  ///< tiles of a thread
static_assert(kFeatures % kTile == 0 && kThreads >= kFeatures);

/// Finds row and column of a tile of the lower triangle.
__device__ void place_of(int tile, int& row, int& column) {
  row = 0;
  while ((row + 1) * (row + 2) / 2 <= tile) ++row;
  column = tile - row * (row + 1) / 2;
}

/// One block per bin; a thread keeps its tiles, and a feature of B, in registers. All terms and
/// sums are integers that doubles hold.
__global__ void __launch_bounds__(kThreads) sum_kernel(const __grid_constant__ SumsJob job) {
  __shared__ double f[kSamples][kFeatures];
  __shared__ double weight[kSamples];
  __shared__ int32_t part[kSamples];
  const int me = static_cast<int>(threadIdx.x);
  int64_t* sums = job.sums + static_cast<int64_t>(blockIdx.x) * sums_of(job.parts);
  int row[kOwn], column[kOwn];
  for (int t = 0; t < kOwn; ++t) place_of(me + t * kThreads, row[t], column[t]);
  const int64_t end = job.first[blockIdx.x + 1];
  for (int64_t from = job.first[blockIdx.x]; from < end; from += kExactSamples) {
    double g[kOwn][kTile][kTile] = {}, b[kMaximumParts] = {};
    const int64_t to = from + kExactSamples < end ? from + kExactSamples : end;
    for (int64_t block = from; block < to; block += kSamples) {
      __syncthreads();
      if (me < kSamples) {
        weight[me] = 0;
        part[me] = -1;
        for (int k = 0; k < kFeatures; ++k) f[me][k] = 0;
        if (block + me < to) {
          const Share share = job.shares[block + me];
          const Sample sample = job.samples[share.sample];
          const Channels& channels = job.slabs[sample.of_slab];
          weight[me] = share.weight;
          part[me] = sample.part;
          channels.for_features(voxel_of(sample.voxel, channels.size),
                                [&](int32_t k, int32_t value) { f[me][k] = value; });
        }
      }
      __syncthreads();
#pragma unroll
      for (int t = 0; t < kOwn; ++t) {
        if (me + t * kThreads >= kTiles) continue;
        for (int s = 0; s < kSamples; ++s) {
          double x[kTile];
#pragma unroll
          for (int j = 0; j < kTile; ++j) x[j] = f[s][column[t] * kTile + j];
#pragma unroll
          for (int i = 0; i < kTile; ++i) {
            const double a = weight[s] * f[s][row[t] * kTile + i];
#pragma unroll
            for (int j = 0; j < kTile; ++j) g[t][i][j] += a * x[j];
          }
        }
      }
      for (int s = 0; s < kSamples && me < kFeatures; ++s) {
#pragma unroll
        for (int p = 0; p < kMaximumParts; ++p) {
          if (part[s] == p) b[p] += weight[s] * f[s][me];
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kOwn; ++t) {
      if (me + t * kThreads >= kTiles) continue;
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
#pragma unroll
        for (int j = 0; j < kTile; ++j) {
          const int y = row[t] * kTile + i, x = column[t] * kTile + j;
          if (x <= y) sums[y * (y + 1) / 2 + x] += static_cast<int64_t>(g[t][i][j]);
        }
      }
    }
#pragma unroll
    for (int p = 0; p < kMaximumParts; ++p) {
      if (me < kFeatures && p < job.parts) {
        sums[kTriangle + p * kFeatures + me] += static_cast<int64_t>(b[p]);
      }
    }
  }
}

}  // namespace

void sum(const SumsJob& job, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  if (job.bins == 0) return;
  sum_kernel<<<static_cast<unsigned>(job.bins), kThreads, 0, stream>>>(job);
  larch::cuda::check_launch("sum_kernel");
  LARCH_CUDA_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace larch::experts::cuda
