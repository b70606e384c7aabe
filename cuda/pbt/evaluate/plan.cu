// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/tile.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

/// Returns the channel of full resolution that most weak classifiers use, or -1.
int busiest_channel(const CompiledTree& tree, std::span<const image::ChannelSpec> channels) {
  std::vector<int> uses(channels.size(), 0);
  for (const TapRange& range : tree.ranges) {
    const auto channel = static_cast<size_t>(range.channel);
    if (channels[channel].level == 0) ++uses[channel];
  }
  const auto most = std::max_element(uses.begin(), uses.end());
  return most == uses.end() || *most == 0 ? -1 : static_cast<int>(most - uses.begin());
}

/// Lays out the copy of a tile with the extent of the taps around it.
void lay_out(Tiling& t, const features::Tap& low, const features::Tap& high) {
  t.lo = {low.dx, low.dy, low.dz};
  t.extent = voxels_of(t) + Vec3i{high.dx, high.dy, high.dz} - t.lo;
  t.row = t.extent.x;
  // Planes 8 banks apart: the 8 x 4 voxels of a pass then meet in no bank.
  t.plane = t.row * t.extent.y;
  t.plane += ((8 - t.plane % 32) + 32) % 32;
}

/// Returns the tile with the most bricks whose copy fits shared memory; of those the one with the
/// smallest copy. None if the tree is too deep, weights do not fit the packed form, or the taps
/// reach so far that too few bricks would share a copy.
std::optional<Tiling> plan_tiles(const CompiledTree& tree,
                                 std::span<const image::ChannelSpec> channels,
                                 const Device& device) {
  const int channel = busiest_channel(tree, channels);
  if (tree.depth > kTileLevels || channel < 0) return std::nullopt;
  std::vector<features::Tap> boxes;
  features::widen(boxes, tree.taps);
  const features::Tap &low = boxes[2 * static_cast<size_t>(channel)],
                      &high = boxes[2 * static_cast<size_t>(channel) + 1];
  constexpr int kLimit = 1 << (kWeightBits - 1);
  if (low.weight < -kLimit || high.weight >= kLimit) return std::nullopt;
  constexpr int kFewest = 4;
  std::optional<Tiling> best;
  for (int x = 1; x <= 4; ++x) {
    for (int y = 1; y <= 2; ++y) {
      for (int z = 1; z <= 4; ++z) {
        Tiling tried{.bricks = {x, y, z}, .channel = channel};
        lay_out(tried, low, high);
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

std::shared_ptr<const WalkPlan> plan(const Model& model, std::vector<CompiledTree> trees,
                                     const Device& device) {
  if (model.channels.size() > kMaximumChannels) {
    throw UsageError("pbt::evaluate: more than 64 channels on a CUDA device");
  }
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  auto made = std::make_shared<Plan>();
  for (const CompiledTree& tree : trees) {
    TreePlan& planned = made->trees.emplace_back();
    planned.nodes = tree.nodes;
    planned.root_q = tree.root_q;
    planned.direct = pack_tree(tree, nullptr, device);
    planned.tiling = plan_tiles(tree, model.channels, device);
    if (planned.tiling) planned.tiled = pack_tree(tree, &*planned.tiling, device);
  }
  // The trees may be read in other streams from now on.
  LARCH_CUDA_CHECK(cudaStreamSynchronize(larch::cuda::stream_of(device)));
  return made;
}

}  // namespace larch::pbt::cuda
