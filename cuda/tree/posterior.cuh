// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "cuda/core/check.cuh"
#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/tree/flat_tree.h"

namespace larch::tree::cuda {

template <class Response>
__global__ void posterior_kernel(const TreeView* trees, size_t tree_count, Response response,
                                 size_t count, float* out) {
  const size_t item = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item < count) {
    out[item] = probability_float(ensemble_posterior(trees, tree_count, response, item));
  }
}

/// The posterior of items as larch/tree/posterior.h gives it, on the device of the context. What
/// pointers the functor holds are of that device.
template <class Response>
std::vector<float> posterior(const std::vector<FlatTree>& trees, const Response& response,
                             size_t count, const Context& context) {
  static_assert(std::is_trivially_copyable_v<Response>);
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  if (count == 0) return {};
  const ResidentTrees resident = make_resident(trees, device);
  Buffer<float> out(device, count);
  constexpr unsigned kThreads = 128;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  posterior_kernel<<<blocks, kThreads, 0, larch::cuda::stream_of(device)>>>(
      resident.views.data(), resident.views.size(), response, count, out.data());
  larch::cuda::check_launch("posterior_kernel");
  return out.to_vector();
}

}  // namespace larch::tree::cuda
