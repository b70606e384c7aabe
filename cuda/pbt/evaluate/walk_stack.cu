// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/pbt/evaluate/walk.cuh"

namespace larch::pbt::cuda {
namespace {

/// Visits of all voxels of a volume that lie in the region of interest.
struct VolumeVisit {
  /// The voxel of this thread, and the place of its posterior; false if there is none.
  __device__ bool find(const WalkArguments& a, Vec3i& at, int64_t& place) const {
    at = {static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
          static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y),
          static_cast<int>(blockIdx.z * blockDim.z + threadIdx.z)};
    if (at.x >= a.size.x || at.y >= a.size.y || at.z >= a.size.z) return false;
    place = linear_index(a.size, at);
    if (a.roi == nullptr || a.roi[place] != 0) return true;
    store(a, place, 0);
    return false;
  }
};

/// Visits of the voxels of a list.
struct ListVisit {
  const Vec3i* voxels;
  int64_t count;

  __device__ bool find(const WalkArguments& /*a*/, Vec3i& at, int64_t& place) const {
    place = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (place >= count) return false;
    at = voxels[place];
    return true;
  }
};

template <class Visit, bool kMany, class NodeTest, class Leaf>
__global__ void __launch_bounds__(256)
    stack_kernel(const __grid_constant__ WalkArguments a, Visit visit) {
  Vec3i at;
  int64_t place = 0;
  if (!visit.find(a, at, place)) return;
  const auto test = [&](const tree::FlatNode& node, uint32_t weight) {
    int32_t h[1];
    NodeTest::template ask<1, int64_t, kMany>(
        a.tree, node, a.integral,
        [&](int channel, int64_t(&base)[1]) { base[0] = a.layouts[channel].base(at); }, h);
    return NodeTest::split(a.tree, weight, h[0]);
  };
  Leaf leaf;
  tree::traverse(a.tree.nodes, test, leaf);
  store(a, place, leaf.total);
}

template <class Visit>
void launch(const WalkJob& job, const WalkArguments& arguments, const Visit& visit, dim3 grid,
            dim3 threads) {
  const auto kernel = job.tree.many_channels
                          ? stack_kernel<Visit, true, StrongNode, tree::ProbabilityLeaf>
                          : stack_kernel<Visit, false, StrongNode, tree::ProbabilityLeaf>;
  kernel<<<grid, threads, 0, job.stream()>>>(arguments, visit);
  larch::cuda::check_launch("stack_kernel");
}

}  // namespace

void stack_walk(const WalkJob& job, const WalkArguments& arguments) {
  const Vec3i& size = arguments.size;
  const dim3 threads(32, 4, 2);
  const dim3 grid(blocks_for(size.x, threads.x), blocks_for(size.y, threads.y),
                  blocks_for(size.z, threads.z));
  launch(job, arguments, VolumeVisit{}, grid, threads);
}

void stack_walk_list(const WalkJob& job, const WalkArguments& arguments, const Vec3i* voxels,
                     int64_t count) {
  constexpr unsigned kThreads = 128;
  launch(job, arguments, ListVisit{voxels, count}, blocks_for(count, kThreads), kThreads);
}

}  // namespace larch::pbt::cuda
