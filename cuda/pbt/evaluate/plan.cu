// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/check.cuh"
#include "cuda/pbt/evaluate/tile.cuh"
#include "larch/core/error.h"

namespace larch::pbt::cuda {
namespace {

/// Lays out the copies of a tile with the extents of the taps around it.
void lay_out(Tiling& t, const std::vector<features::Tap>& boxes) {
  const Vec3i voxels = voxels_of(t);
  t.copy_bytes = 0;
  for (int level = 0; 2 * static_cast<size_t>(level) < boxes.size(); ++level) {
    const features::Tap *low = &boxes[2 * static_cast<size_t>(level)], *high = low + 1;
    Copy& copy = t.copies[level];
    copy.lo = {low->dx, low->dy, low->dz};
    copy.extent = Vec3i{high->dx, high->dy, high->dz} - copy.lo;
    for (int axis = 0; axis < 3; ++axis) copy.extent[axis] += most_cells(voxels[axis], level);
    copy.row = copy.extent.x;
    // The coarse voxels of half a brick then meet in no bank.
    const int width = 8 >> level;
    while (level > 0 && width > 0 && copy.row % (2 * width) != width) ++copy.row;
    // Planes 8 banks apart: the 8 x 4 voxels of a pass then meet in no bank.
    copy.plane = copy.row * copy.extent.y;
    if (level == 0) copy.plane += ((8 - copy.plane % 32) + 32) % 32;
    t.copy_bytes = std::max(t.copy_bytes, sizeof(uint32_t) * static_cast<size_t>(copy.plane) *
                                              static_cast<size_t>(copy.extent.z));
  }
}

/// Returns the tile with the most bricks whose copies fit shared memory; of those the one with the
/// smallest copy. None if the tree is one leaf or too deep, weights do not fit the packed form, or
/// the taps reach so far that too few bricks would share a copy.
std::optional<Tiling> plan_tiles(const CompiledTree& tree,
                                 std::span<const image::ChannelSpec> channels,
                                 const Device& device) {
  std::vector<features::Tap> boxes;  // [level][low, high]
  for (features::Tap tap : tree.taps) {
    tap.channel = static_cast<uint16_t>(channels[tap.channel].level);
    features::widen(boxes, std::span(&tap, 1));
  }
  constexpr int kLimit = 1 << (kWeightBits - 1);
  const auto is_out = [](const features::Tap& box) {
    return box.weight < -kLimit || box.weight >= kLimit || box.channel >= kMaximumLevels;
  };
  if (tree.weaks.empty() || tree.depth > kTileLevels || std::ranges::any_of(boxes, is_out))
    return std::nullopt;
  Tiling tiling;
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto reads = [c](const TapRange& r) { return static_cast<size_t>(r.channel) == c; };
    if (std::ranges::none_of(tree.ranges, reads)) continue;
    tiling.channels[tiling.channel_count++] = static_cast<uint8_t>(c);
  }
  constexpr int kFewest = 4;
  std::optional<Tiling> best;
  for (int n = 0; n < 32; ++n) {
    tiling.bricks = {1 + n / 8, 1 + n / 4 % 2, 1 + n % 4};
    lay_out(tiling, boxes);
    const int bricks = brick_count(tiling), before = best ? brick_count(*best) : kFewest;
    if (bricks > kMaximumBricks || bricks < before || tiling.copy_bytes > most_copy_bytes(device))
      continue;
    if (!best || bricks > before || tiling.copy_bytes < best->copy_bytes) best = tiling;
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
    planned.direct = pack_tree(tree, model.channels, nullptr, device);
    planned.tiling = plan_tiles(tree, model.channels, device);
    const Tiling* tiling = planned.tiling ? &*planned.tiling : nullptr;
    if (tiling != nullptr) planned.tiled = pack_tree(tree, model.channels, tiling, device);
  }
  // The trees may be read in other streams from now on.
  LARCH_CUDA_CHECK(cudaStreamSynchronize(larch::cuda::stream_of(device)));
  return made;
}

}  // namespace larch::pbt::cuda
