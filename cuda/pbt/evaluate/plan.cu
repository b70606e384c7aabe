// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/plan.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {

std::shared_ptr<const WalkPlan> plan(const PlanJob& job, const Context& context) {
  if (job.layouts.size() > kMaxChannels) {
    throw UsageError("pbt::evaluate: more than 64 channels on a CUDA device");
  }
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  auto made = std::make_shared<Plan>();
  made->walk = job.walk;
  for (const CompiledTree& tree : job.trees) {
    TreePlan& planned = made->trees.emplace_back();
    planned.nodes = tree.nodes;
    planned.root_q = tree.root_q;
    planned.many_channels = has_many_channels(tree);
    StagedTaps staged;
    if (job.walk == Walk::kTile) {
      planned.tiles = plan_tiles(tree, job.layouts, job.tile, context.device, &staged);
    }
    planned.packed =
        pack_tree(tree, job.layouts, planned.tiles.staged ? &staged : nullptr, context.device);
  }
  // The trees may be read in other streams from now on.
  LARCH_CUDA_CHECK(cudaStreamSynchronize(larch::cuda::stream_of(context.device)));
  return made;
}

}  // namespace larch::pbt::cuda
