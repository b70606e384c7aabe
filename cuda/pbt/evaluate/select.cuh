// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"

namespace larch::pbt::cuda {

/// Selections are of fewer voxels than this: indices have 32 bits, and CUB counted with an int
/// before CUDA 13, where larger numbers would have lost bits without a word.
constexpr int64_t kMaximumSelected = CUB_VERSION >= 300000 ? int64_t{1} << 32 : int64_t{1} << 31;

/// Writes the indices i in [0, voxels) with `wanted(i)` to `list`, ascending, and their number to
/// `found`, both on the device. `list` has room for all of them. The work is queued on return.
template <class Wanted>
void select_voxels(int64_t voxels, const Wanted& wanted, uint32_t* list, int64_t* found,
                   const Device& device) {
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const thrust::counting_iterator<uint32_t> all(0);
  size_t bytes = 0;
  LARCH_CUDA_CHECK(cub::DeviceSelect::If(nullptr, bytes, all, list, found, voxels, wanted, stream));
  Buffer<uint8_t> scratch(device, bytes);
  LARCH_CUDA_CHECK(
      cub::DeviceSelect::If(scratch.data(), bytes, all, list, found, voxels, wanted, stream));
}

}  // namespace larch::pbt::cuda
