// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "cuda/pbt/evaluate/walk.cuh"
#include "larch/core/buffer.h"

namespace larch::pbt::cuda {
namespace {

/// The mean of an ensemble's trees from their sum, which is 0 outside the region of interest.
__global__ void mean_kernel(WalkArguments a, const uint64_t* sum, uint64_t trees) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < a.out.voxels()) store(a, i, tree::ensemble_mean_q60(sum[i], trees));
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
void walk_trees(const EvaluateJob& job, WalkArguments arguments, const Device& device) {
  const auto& plan = static_cast<const Plan&>(*job.plan);
  const auto walk = job.walk == Walk::kStack   ? stack_walk
                    : job.walk == Walk::kQueue ? queue_walk
                                               : tile_walk;
  const cudaStream_t stream = larch::cuda::stream_of(device);
  const int64_t voxels = arguments.out.voxels();
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
    // A tree that is one leaf reads no channel.
    (tree.nodes[0].n_weak == 0 ? stack_walk : walk)({tree, job.queue_items, device}, arguments);
  };
  if (plan.trees.size() == 1) return walk_tree(plan.trees[0]);
  Buffer<uint64_t> sum(device, static_cast<size_t>(voxels));
  sum.set_zero();
  arguments.sum = sum.data();
  for (const TreePlan& tree : plan.trees) walk_tree(tree);
  arguments.sum = nullptr;
  mean_kernel<<<blocks_for(voxels, 256), 256, 0, stream>>>(arguments, sum.data(),
                                                           plan.trees.size());
  larch::cuda::check_launch("mean_kernel");
}

}  // namespace

void evaluate(const EvaluateJob& job, const Context& context) {
  const Device& device = context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  WalkArguments arguments;
  arguments.out.size = job.size;
  const auto voxels = static_cast<size_t>(arguments.out.voxels());
  const Buffer<uint8_t> roi(device, std::span(job.roi, job.roi != nullptr ? voxels : 0));
  Buffer<float> out(device, voxels);
  arguments.integral = job.integral;
  std::copy(job.layouts.begin(), job.layouts.end(), arguments.layouts);
  arguments.out.data = out.data();
  arguments.roi = roi.data();
  walk_trees(job, arguments, device);
  out.download(std::span<float>(job.out, voxels));
}

}  // namespace larch::pbt::cuda
