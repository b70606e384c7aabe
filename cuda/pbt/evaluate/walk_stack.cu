// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/pbt/evaluate/walk.cuh"

namespace larch::pbt::cuda {
namespace {

__global__ void __launch_bounds__(256) stack_kernel(const __grid_constant__ WalkArguments a) {
  const Vec3i at{static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
                 static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y),
                 static_cast<int>(blockIdx.z * blockDim.z + threadIdx.z)};
  if (at.x >= a.out.size.x || at.y >= a.out.size.y || at.z >= a.out.size.z) return;
  const int64_t place = a.out.linear(at);
  if (a.roi != nullptr && a.roi[place] == 0) return store(a, place, 0);
  const auto test = [&](const tree::FlatNode& node, uint32_t weight) {
    const auto place = [&](int channel, int64_t(&base)[1]) {
      base[0] = a.layouts[channel].base(at);
    };
    int32_t h[1];
    ask_node(a.tree, node, a.integral, place, h);
    return tree::split_weight(weight, h[0], a.tree.thresholds, a.tree.logistic);
  };
  tree::ProbabilityLeaf leaf;
  tree::traverse(a.tree.nodes, test, leaf);
  store(a, place, leaf.total);
}

}  // namespace

void stack_walk(const WalkJob& job, const WalkArguments& arguments) {
  const Vec3i& size = arguments.out.size;
  const dim3 threads(32, 4, 2);
  const dim3 grid(blocks_for(size.x, threads.x), blocks_for(size.y, threads.y),
                  blocks_for(size.z, threads.z));
  stack_kernel<<<grid, threads, 0, job.stream()>>>(arguments);
  larch::cuda::check_launch("stack_kernel");
}

}  // namespace larch::pbt::cuda
