// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/parallel.h"

#include <algorithm>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace larch {

void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  if (threads <= 1 || count <= grain) {
    body(0, count);
    return;
  }
  // More threads than cores are legal (and tested); TBB would otherwise cap them with a warning.
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, 1024);
  tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, count, static_cast<size_t>(std::max<int64_t>(grain, 1))),
        [&](const tbb::blocked_range<int64_t>& range) { body(range.begin(), range.end()); },
        tbb::simple_partitioner());
  });
}

}  // namespace larch
