// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/pbt/evaluate/walk.cuh"

namespace larch::pbt::cuda {
namespace {

__global__ void __launch_bounds__(256) stack_kernel(const __grid_constant__ WalkArguments a) {
  const Vec3i at{static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
                 static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y),
                 static_cast<int>(blockIdx.z * blockDim.z + threadIdx.z)};
  if (at.x >= a.size.x || at.y >= a.size.y || at.z >= a.size.z) return;
  const int64_t i = linear_index(a.size, at);
  if (a.roi != nullptr && a.roi[i] == 0) {
    store(a, i, 0);
    return;
  }
  int32_t nodes[kMaxDepth + 2];
  uint32_t weights[kMaxDepth + 2];
  int height = 0;
  int32_t index = 0;
  uint32_t weight = kOneQ30;
  uint64_t total = 0;
  while (true) {
    const PackedNode node = a.tree.nodes[index];
    int32_t h[1];
    strong_classifier<1, int64_t, false>(
        a.tree, node, a.integral,
        [&](int channel, int64_t(&base)[1]) { base[0] = a.layouts[channel].base(at); }, h);
    const SplitWeights share = split_weights(a.tree, node, weight, h[0]);
    total += share.ended;
    if (share.right > 0) {
      nodes[height] = node.right;
      weights[height++] = share.right;
    }
    if (share.left > 0) {
      index = node.left;
      weight = share.left;
      continue;
    }
    if (height == 0) break;
    index = nodes[--height];
    weight = weights[height];
  }
  store(a, i, total);
}

}  // namespace

void stack_walk(const EvaluateJob& job, WalkArguments arguments, const Device& device) {
  const auto tree = prepare_direct(job, Walk::kStack, device);
  arguments.tree = tree->packed.view;
  const dim3 threads(32, 4, 2);
  const dim3 grid(blocks_for(job.size.x, threads.x), blocks_for(job.size.y, threads.y),
                  blocks_for(job.size.z, threads.z));
  stack_kernel<<<grid, threads, 0, larch::cuda::stream_of(device)>>>(arguments);
  larch::cuda::check_launch("stack_kernel");
}

}  // namespace larch::pbt::cuda
