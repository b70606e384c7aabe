// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/walk_queues.h"

#include <algorithm>

namespace larch::pbt {

std::vector<Queue> take_portion(std::vector<Queue>& waiting, int64_t items) {
  std::vector<Queue> portion;
  uint32_t chunk = 0;
  size_t used_up = 0;
  for (Queue& queue : waiting) {
    const int64_t taken = std::min(queue.count, items);
    if (taken == 0) break;
    portion.push_back({queue.node, chunk, queue.first, taken});
    chunk += chunks_of(taken);
    items -= taken;
    queue.first += taken;
    queue.count -= taken;
    if (queue.count == 0) ++used_up;
  }
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(used_up));
  return portion;
}

int64_t queue_bytes(int64_t voxels, int depth, int64_t nodes, int64_t most_items) {
  constexpr int64_t kItem = 8;
  constexpr int64_t kTotalAndList = 12;  // of each voxel
  // Both parts of a chunk's items; their counts and places, and as much for the sums of these.
  constexpr int64_t kChunkBytes = 2 * kQueueChunk * kItem + 2 * (4 + 8) + 24;
  int64_t waiting = 0, level = std::min(voxels, root_portion(most_items)), largest = level;
  for (int d = 0; d < depth; ++d) {
    waiting += kItem * level;
    largest = level;
    level = std::min(2 * level, most_items);
  }
  const int64_t portion = std::min(largest, level_portion(most_items));
  const int64_t widest = std::min({nodes, portion, int64_t{1} << std::min(depth, 40)});
  const int64_t chunks = portion / kQueueChunk + widest;
  return kTotalAndList * voxels + waiting + kChunkBytes * chunks +
         static_cast<int64_t>(sizeof(Queue)) * widest;
}

}  // namespace larch::pbt
