// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "catch2/catch.hpp"

#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/evaluate/walk_queues.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::pbt {
namespace {

/// What the queue walk keeps on a device, without doing it: a full tree of `depth` levels in which
/// every item goes to both children. Nodes are numbered from 1 as in a heap.
struct Simulation {
  int depth;
  int64_t most_items;
  int64_t most_bytes = 0, most_waiting = 0, visits = 0;

  void run(int64_t voxels) {
    for (int64_t first = 0; first < voxels; first += root_portion(most_items)) {
      portion(std::min(root_portion(most_items), voxels - first), 12 * voxels);
    }
  }

  void portion(int64_t count, int64_t fixed_bytes) {
    struct Waiting {
      std::vector<Queue> queues;
      int64_t items;  ///< of the buffer
    };
    std::vector<Waiting> levels{{{{1, 0, 0, count}}, count}};
    while (!levels.empty()) {
      const auto queues = take_portion(levels.back().queues, level_portion(most_items));
      REQUIRE_FALSE(queues.empty());
      Waiting next{{}, 0};
      int64_t chunks = 0;
      for (const Queue& queue : queues) {
        REQUIRE(queue.chunk == chunks);
        chunks += chunks_of(queue.count);
        visits += queue.count;
        if (2 * queue.node >= 1 << depth) continue;  // its children are leaves
        for (const int child : {0, 1}) {
          next.queues.push_back({2 * queue.node + child, 0, next.items, queue.count});
          next.items += queue.count;
        }
      }
      most_waiting = std::max(most_waiting, next.items);
      int64_t bytes = fixed_bytes + 8 * next.items + chunks * (2 * 128 * 8 + 2 * 12) +
                      static_cast<int64_t>(queues.size() * sizeof(Queue));
      for (const Waiting& level : levels) bytes += 8 * level.items;
      most_bytes = std::max(most_bytes, bytes);
      if (levels.back().queues.empty()) levels.pop_back();
      if (!next.queues.empty()) levels.push_back(next);
    }
  }
};

TEST_CASE("queue walk: items that go both ways stay within the bound, and each is led once") {
  for (const int depth : {1, 3, 8}) {
    for (const int64_t most : {int64_t{1000}, int64_t{1} << 16, kMaximumQueueItems}) {
      const int64_t voxels = 100000 + depth;
      Simulation walk{depth, most};
      walk.run(voxels);
      CHECK(walk.visits == voxels * ((1 << depth) - 1));
      CHECK(walk.most_waiting <= most);
      CHECK(walk.most_bytes <= queue_bytes(voxels, depth, 2 << depth, most));
    }
  }
}

TEST_CASE("queue walk: the plan of a soft tree of depth 8 at 256^3 counts what it takes") {
  Simulation walk{8, kMaximumQueueItems};
  const int64_t voxels = 256 * 256 * 256;
  walk.run(voxels);
  CHECK(walk.visits == voxels * 255);
  CHECK(walk.most_bytes <= queue_bytes(voxels, 8, 511, kMaximumQueueItems));
  CHECK(queue_bytes(voxels, 8, 511, kMaximumQueueItems) < int64_t{2} << 30);
  // As a plan: less memory is kept to by shorter queues before the volume is cut.
  fixtures::RandomTree spec;
  const Model model = fixtures::random_model(3, spec);
  SlabProblem problem{{256, 256, 256}, 4, false, true, int64_t{1} << 40};
  const SlabPlan large = plan_slabs(model, problem);
  CHECK(large.queue_items == kMaximumQueueItems);
  CHECK(large.bytes > queue_bytes(voxels, model.depth(), 1, kMaximumQueueItems));
  problem.memory_bytes = large.bytes - 1;
  const SlabPlan less = plan_slabs(model, problem);
  CHECK(less.count == 1);
  CHECK(less.queue_items < kMaximumQueueItems);
  CHECK(less.bytes <= problem.memory_bytes);
}

}  // namespace
}  // namespace larch::pbt
