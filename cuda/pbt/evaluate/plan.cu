// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/tile.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

/// Returns the channel of full resolution that most weak classifiers use, or -1.
int busiest_channel(const CompiledTree& tree, std::span<const image::IntegralLayout> layouts) {
  std::vector<int> uses(layouts.size(), 0);
  for (const TapRange& range : tree.ranges) {
    const auto channel = static_cast<size_t>(range.channel);
    if (layouts[channel].level == 0) ++uses[channel];
  }
  const auto most = std::max_element(uses.begin(), uses.end());
  return most == uses.end() || *most == 0 ? -1 : static_cast<int>(most - uses.begin());
}

/// Extent of taps around a voxel, in elements along x, y and z.
struct TapBox {
  Vec3i lo{0, 0, 0}, hi{0, 0, 0};
};

/// The box of the taps of a channel; false if a weight does not fit the packed form.
bool find_box(const CompiledTree& tree, int channel, TapBox& box) {
  constexpr int kLimit = 1 << (kWeightBits - 1);
  for (size_t w = 0; w < tree.weaks.size(); ++w) {
    if (tree.ranges[w].channel != channel) continue;
    for (const features::Tap& tap : tree.taps_of(w)) {
      if (tap.weight < -kLimit || tap.weight >= kLimit) return false;
      box.lo = {std::min<int>(box.lo.x, tap.dx), std::min<int>(box.lo.y, tap.dy),
                std::min<int>(box.lo.z, tap.dz)};
      box.hi = {std::max<int>(box.hi.x, tap.dx), std::max<int>(box.hi.y, tap.dy),
                std::max<int>(box.hi.z, tap.dz)};
    }
  }
  return true;
}

/// Lays out the copy of a tile with the extent of the taps around it.
void lay_out(Tiling& t, const TapBox& box) {
  t.lo = box.lo;
  t.extent = voxels_of(t) + box.hi - box.lo;
  t.row = t.extent.x;
  // Planes 8 banks apart: the 8 x 4 voxels of a pass then meet in no bank.
  t.plane = t.row * t.extent.y;
  t.plane += ((8 - t.plane % 32) + 32) % 32;
}

/// Returns the tile with the most bricks whose copy fits shared memory; of those the one with the
/// smallest copy. None if the tree is too deep, or the taps reach so far that too few bricks would
/// share a copy.
std::optional<Tiling> plan_tiles(const CompiledTree& tree,
                                 std::span<const image::IntegralLayout> layouts,
                                 const Device& device) {
  const int channel = busiest_channel(tree, layouts);
  TapBox box;
  if (tree.depth > kTileLevels || channel < 0 || !find_box(tree, channel, box)) {
    return std::nullopt;
  }
  constexpr int kFewest = 4;
  std::optional<Tiling> best;
  for (int x = 1; x <= 4; ++x) {
    for (int y = 1; y <= 2; ++y) {
      for (int z = 1; z <= 4; ++z) {
        Tiling tried{.bricks = {x, y, z}, .channel = channel};
        lay_out(tried, box);
        const int bricks = brick_count(tried), before = best ? brick_count(*best) : kFewest;
        if (bricks > kMaximumBricks || bricks < before ||
            tried.copy_bytes() > most_copy_bytes(device))
          continue;
        if (!best || bricks > before || tried.copy_bytes() < best->copy_bytes()) best = tried;
      }
    }
  }
  if (best) {
    best->mixed = std::any_of(tree.ranges.begin(), tree.ranges.end(),
                              [channel](const TapRange& r) { return r.channel != channel; });
  }
  return best;
}

}  // namespace

std::shared_ptr<const WalkPlan> plan(const PlanJob& job, const Context& context) {
  if (job.layouts.size() > kMaximumChannels) {
    throw UsageError("pbt::evaluate: more than 64 channels on a CUDA device");
  }
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  auto made = std::make_shared<Plan>();
  made->walk = job.walk;
  for (const CompiledTree& tree : job.trees) {
    TreePlan& planned = made->trees.emplace_back();
    planned.nodes = tree.nodes;
    planned.root_q = tree.root_q;
    if (job.walk == Walk::kTile) planned.tiling = plan_tiles(tree, job.layouts, context.device);
    planned.packed =
        pack_tree(tree, job.layouts, planned.tiling ? &*planned.tiling : nullptr, context.device);
  }
  // The trees may be read in other streams from now on.
  LARCH_CUDA_CHECK(cudaStreamSynchronize(larch::cuda::stream_of(context.device)));
  return made;
}

}  // namespace larch::pbt::cuda
