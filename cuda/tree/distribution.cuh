// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/tree/forest.h"

namespace larch::tree::cuda {

template <class Response>
__global__ void distribution_kernel(ForestView forest, Response response, size_t count,
                                    float* out) {
  const size_t item = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item < count) item_distribution(forest, response, item, out + item * forest.classes);
}

/// The distributions of items as tree::cpu::distribution gives them, on the device of the context.
/// The pointers that the functor holds are of that device.
template <class Response>
std::vector<float> distribution(const Forest& forest, const Response& response, size_t count,
                                const Context& context) {
  static_assert(std::is_trivially_copyable_v<Response>);
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (count == 0) return {};
  const ResidentForest resident = make_resident(forest, forest.nodes, device);
  Buffer<float> out(device, count * forest.classes);
  constexpr unsigned kThreads = 128;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  distribution_kernel<<<blocks, kThreads, 0, larch::cuda::stream_of(device)>>>(
      resident.view, response, count, out.data());
  larch::cuda::check_launch("distribution_kernel");
  return out.to_vector();
}

}  // namespace larch::tree::cuda
