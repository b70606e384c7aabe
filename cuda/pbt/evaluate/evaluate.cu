// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "cuda/pbt/evaluate/walk.cuh"
#include "larch/core/buffer.h"

namespace larch::pbt::cuda {
namespace {

/// A tree that is a single leaf gives one value everywhere.
__global__ void constant_kernel(WalkArguments a, uint64_t q60, int64_t voxels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < voxels) store(a, i, a.roi == nullptr || a.roi[i] != 0 ? q60 : 0);
}

/// The mean of an ensemble's trees from their sum, which is 0 outside the region of interest.
__global__ void mean_kernel(WalkArguments a, const uint64_t* sum, uint64_t trees, int64_t voxels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < voxels) store(a, i, tree::ensemble_mean_q60(sum[i], trees));
}

/// Leads the voxels through the trees of a plan. Their posteriors, or the means of an ensemble's,
/// go to the output.
void walk_trees(const Plan& plan, WalkArguments arguments, int64_t items, int64_t queue_items,
                const Device& device) {
  const auto walk = plan.walk == Walk::kStack   ? stack_walk
                    : plan.walk == Walk::kQueue ? queue_walk
                                                : tile_walk;
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const auto walk_tree = [&](const TreePlan& tree) {
    arguments.tree = tree.packed.view;
    if (!tree.is_leaf()) return walk(WalkJob{tree, queue_items, device}, arguments);
    constant_kernel<<<blocks_for(items, 256), 256, 0, stream>>>(
        arguments, static_cast<uint64_t>(tree::kOneQ30) * tree.root_q, items);
    larch::cuda::check_launch("constant_kernel");
  };
  if (plan.trees.size() == 1) return walk_tree(plan.trees[0]);
  Buffer<uint64_t> sum(device, static_cast<size_t>(items));
  sum.set_zero();
  arguments.sum = sum.data();
  for (const TreePlan& tree : plan.trees) walk_tree(tree);
  arguments.sum = nullptr;
  mean_kernel<<<blocks_for(items, 256), 256, 0, stream>>>(arguments, sum.data(), plan.trees.size(),
                                                          items);
  larch::cuda::check_launch("mean_kernel");
}

}  // namespace

void evaluate(const EvaluateJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const int64_t voxels = static_cast<int64_t>(job.size.x) * job.size.y * job.size.z;
  Buffer<uint8_t> roi;
  if (job.roi != nullptr) {
    roi = Buffer<uint8_t>(device, std::span<const uint8_t>(job.roi, static_cast<size_t>(voxels)));
  }
  WalkArguments arguments;
  arguments.integral = job.integral;
  std::copy(job.layouts.begin(), job.layouts.end(), arguments.layouts);
  Buffer<float> out(device, static_cast<size_t>(voxels));
  arguments.out = out.data();
  arguments.size = job.size;
  arguments.roi = job.roi != nullptr ? roi.data() : nullptr;
  walk_trees(plan_of(job.plan), arguments, voxels, job.queue_items, device);
  out.download(std::span<float>(job.out, out.size()));
}

}  // namespace larch::pbt::cuda
