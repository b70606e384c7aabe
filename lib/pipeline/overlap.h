// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace larch::pipeline {

/// The three stages that every item of a batch passes, given by its number. `read` and `finish` run
/// in threads of their own, several at a time for different items; `compute` runs in the calling
/// thread, one item at a time. An item whose `read` or `compute` returns false ends there. An
/// exception ends the batch: it is meant for what concerns all items.
struct Stages {
  std::function<int64_t(size_t)> bytes;  ///< memory the item will take, known before it is read
  std::function<bool(size_t)> read;
  std::function<bool(size_t)> compute;
  std::function<void(size_t)> finish;
};

struct OverlapLimits {
  int readers = 1;            ///< 0: all stages in the calling thread, one after the other
  int finishers = 1;          ///< at least 1 unless readers is 0
  size_t ahead = 2;           ///< most items that are being read or wait to be computed
  size_t behind = 2;          ///< most items that are computed and not finished
  int64_t bytes = INT64_MAX;  ///< most memory of all of them together; a larger item goes alone
};

/// Where the time of the computing thread went.
struct OverlapTimes {
  double seconds = 0;
  double waited_for_reading = 0;
  double waited_for_finishing = 0;  ///< too much, or all that is left, is still to be finished
};

/// Leads items 0 .. count - 1 through the stages. Once `stop` returns true (asked at least every
/// 50 ms) no further item is computed; those that are computed are finished. Rethrows the first
/// exception of a stage after all threads have ended.
OverlapTimes overlap(size_t count, const Stages& stages, const OverlapLimits& limits,
                     const std::function<bool()>& stop);

}  // namespace larch::pipeline
