// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch::pbt {

// The bookkeeping of the queue walk. A voxel may go to both children of a node, so the items of a
// level may be twice those of the one above. They are worked off in portions, deepest level first:
// no level ever holds more than a bound, and since the parts of a voxel's posterior are added as
// integers, the portions do not show in the result.

/// Items that a warp takes at a time from one queue.
constexpr int kQueueChunk = 128;

/// The items that wait at one node.
struct Queue {
  int32_t node = 0;
  uint32_t chunk = 0;  ///< its first, counted over the portion
  int64_t first = 0;   ///< its first item, in the buffer of the level
  int64_t count = 0;
};

/// Chunks of so many items of one queue.
constexpr uint32_t chunks_of(int64_t items) {
  return static_cast<uint32_t>((items + kQueueChunk - 1) / kQueueChunk);
}

/// Returns voxels that start at the root together, and items of a level that are worked off
/// together: their children are no more than `most_items`.
constexpr int64_t root_portion(int64_t most_items) {
  return most_items / 4 > 0 ? most_items / 4 : 1;
}
constexpr int64_t level_portion(int64_t most_items) {
  return most_items / 2 > 0 ? most_items / 2 : 1;
}

/// Takes up to `items` items off the front of `waiting`, with chunks numbered from 0. What is left
/// of a queue stays.
std::vector<Queue> take_portion(std::vector<Queue>& waiting, int64_t items);

/// Returns bytes on the device for walks of `voxels` voxels through a tree of `depth` levels with
/// so many nodes, at most.
int64_t queue_bytes(int64_t voxels, int depth, int64_t nodes, int64_t most_items);

}  // namespace larch::pbt
