// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "larch/image/levels.h"

namespace larch::image::cuda {
namespace {

constexpr int kRow = 64;

__global__ void halve_kernel(VolumeView<const int16_t> fine, VolumeView<int16_t> coarse) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y, z = blockIdx.z;
  if (x < coarse.size.x) coarse({x, y, z}) = pyramid_voxel(fine, x, y, z);
}

__global__ void texel_kernel(VolumeView<const int16_t> voxels, Texel* texels) {
  const Vec3i at{static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
                 static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z)};
  if (at.x < voxels.size.x) texels[voxels.linear(at)] = texel_at(voxels, at);
}

/// Rows of voxels in blocks of kRow.
dim3 blocks_of(const Vec3i& size) {
  return dim3(static_cast<unsigned>((size.x + kRow - 1) / kRow), static_cast<unsigned>(size.y),
              static_cast<unsigned>(size.z));
}

}  // namespace

void make_level(const LevelJob& job, const Context& context) {
  const cudaStream_t stream = larch::cuda::stream_for(context.device);
  if (job.coarse.data != nullptr) {
    halve_kernel<<<blocks_of(job.coarse.size), kRow, 0, stream>>>(job.fine, job.coarse);
    larch::cuda::check_launch("halve_kernel");
  }
  if (job.texels != nullptr) {
    texel_kernel<<<blocks_of(job.fine.size), kRow, 0, stream>>>(job.fine, job.texels);
    larch::cuda::check_launch("texel_kernel");
  }
}

}  // namespace larch::image::cuda
