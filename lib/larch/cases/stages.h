// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace larch::cases {

/// The three stages that every item of a queue passes, given by its number, in the order of the
/// items. An exception ends the queue.
struct Stages {
  std::function<void(size_t)> read, compute, finish;
};

/// The time of the computing thread, and its parts in which it waited.
struct StageTimes {
  double seconds = 0;
  double waited_for_reading = 0;
  double waited_for_finishing = 0;  ///< while two items, or at the end all others, were finished
};

/// Runs items 0 .. count - 1 through the stages: one thread reads, the calling thread computes, and
/// one thread finishes, with at most two items between two stages. Without `overlap` the calling
/// thread does all, one item after the other. Once `stop` returns true (asked
/// before each item is computed) what is computed is finished and nothing else is started. Rethrows
/// the first exception of a stage, or of a thread that could not be started, after all threads have
/// ended.
StageTimes run_stages(size_t count, const Stages& stages, bool overlap,
                      const std::function<bool()>& stop);

}  // namespace larch::cases
