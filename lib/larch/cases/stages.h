// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "larch/cases/memory.h"

namespace larch::cases {

/// Asks for more memory than a stage was granted: what it takes in all, in bytes. False if that is
/// not to be had beside the other items.
using Grow = std::function<bool(int64_t bytes)>;

/// The three stages that every item of a batch passes, given by its number. `read` and `finish` run
/// in threads of their own, several at a time for different items; `compute` runs in the calling
/// thread, one item at a time. An item whose `read` or `compute` returns false ends there. An
/// exception ends the batch: it is meant for what concerns all items.
struct Stages {
  std::function<MemoryNeed(size_t)> need;  ///< known before the item is read
  std::function<bool(size_t)> read;
  std::function<bool(size_t)> compute;
  /// Bytes that finishing really takes; less than 0 if the item ends here. Asked in a finisher's
  /// thread, once, where need(item).finishing does not fit. May be empty.
  std::function<int64_t(size_t)> survey;
  /// Returns false if `grow` did: the item has let go of all that it held, and passes all stages
  /// again, alone, after the others. Alone it gets all that it asks for.
  std::function<bool(size_t, const Grow& grow)> finish;
};

struct StageLimits {
  int readers = 1;            ///< 0: all stages in the calling thread, one after the other
  int finishers = 1;          ///< at least 1 unless readers is 0
  size_t ahead = 2;           ///< most items that are being read or wait to be computed
  size_t behind = 2;          ///< most items that are computed and not finished
  int64_t bytes = INT64_MAX;  ///< most memory of all of them together; a larger item goes alone
};

/// Where the time of the computing thread went.
struct StageTimes {
  double seconds = 0;
  double waited_for_reading = 0;
  double waited_for_finishing = 0;  ///< too much, or all that is left, is still to be finished
};

/// Leads items 0 .. count - 1 through the stages. Once `stop` returns true (asked at least every
/// 50 ms) no further item is computed; those that are computed are finished. Rethrows the first
/// exception of a stage, or of a thread that could not be started, after all threads have ended.
///
/// A stage starts where its memory fits beside what the other items hold. An item is let in only if
/// every item in flight could take its largest stage while all others rest. So no stage waits
/// half-way, and whenever nothing runs, something can.
StageTimes run_stages(size_t count, const Stages& stages, const StageLimits& limits,
                      const std::function<bool()>& stop);

}  // namespace larch::cases
