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

/// One thread per word of a stream: adds the offsets of its taps in the channels of the image.
__global__ void place_kernel(const __grid_constant__ WalkArguments a, const features::Tap* taps,
                             int64_t words, uint4* placed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const auto offset = [&](const features::Tap& tap) {
    return static_cast<uint32_t>(a.layouts[tap.channel].linear_offset(tap.dx, tap.dy, tap.dz));
  };
  uint4 word = a.tree.stream[i];
  word.x += offset(taps[2 * i]);
  word.z += offset(taps[2 * i + 1]);
  placed[i] = word;
}

/// Leads the voxels through the trees of a job. Their posteriors, or the means of an ensemble's, go
/// to the output.
void walk_trees(const EvaluateJob& job, WalkArguments arguments, int64_t items,
                const Device& device) {
  const auto& plan = static_cast<const Plan&>(*job.plan);
  const auto walk = job.walk == Walk::kStack   ? stack_walk
                    : job.walk == Walk::kQueue ? queue_walk
                                               : tile_walk;
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const auto walk_tree = [&](const TreePlan& tree) {
    const bool tiled = walk == tile_walk && tree.tiling;
    const PackedTree& packed = tiled ? tree.tiled : tree.direct;
    arguments.tree = packed.view;
    arguments.tree.thresholds = job.thresholds;
    Buffer<uint4> placed(device, packed.taps.size() / 2);
    if (!placed.empty()) {
      const auto words = static_cast<int64_t>(placed.size());
      place_kernel<<<blocks_for(words, 256), 256, 0, stream>>>(arguments, packed.taps.data(), words,
                                                               placed.data());
      larch::cuda::check_launch("place_kernel");
      arguments.tree.stream = placed.data();
    }
    if (!tree.is_leaf()) return walk(WalkJob{tree, job.queue_items, device}, arguments);
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
  walk_trees(job, arguments, voxels, device);
  out.download(std::span<float>(job.out, out.size()));
}

}  // namespace larch::pbt::cuda
