// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "larch/core/context.h"

namespace larch::learning {

/// Holds what a caller may hook into a training. `Partial` is one that is not finished.
template <class Partial>
struct TrainHooks {
  /// Is called after a step, which is a node of a tree, a round of a forest, a detector of a
  /// network or a level of a boundary; writes the checkpoint.
  std::function<void(const Partial&)> after_step{};
  /// Goes on from here: the result has the same bytes as that of an uninterrupted run.
  const Partial* resume = nullptr;
  /// Trees and forests call after_step after the first step, then when so many seconds have gone by
  /// since the last time, and before they stop: a checkpoint holds all steps so far.
  double seconds = 0;
  /// Nodes of a level of a tree are trained together as long as they have at most so many samples;
  /// 0: as many as suits the device. The result does not depend on it.
  size_t samples_at_once = 0;
  int64_t memory_bytes = 0;  ///< of forests, as ForestTask::memory_bytes
};

/// When a checkpoint is written: after the first node, and then when so much time has gone by or
/// the run is to stop.
class Pace {
 public:
  explicit Pace(double seconds) : seconds_(seconds) {}
  bool due(const Context& context) {
    const auto now = Clock::now();
    const bool first = !last_.has_value();
    const double since = first ? 0 : std::chrono::duration<double>(now - *last_).count();
    if (!first && since < seconds_ && !context.stop_requested()) return false;
    last_ = now;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  std::optional<Clock::time_point> last_;
};

}  // namespace larch::learning
