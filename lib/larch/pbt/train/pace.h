// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "larch/core/context.h"

namespace larch::pbt {

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

}  // namespace larch::pbt
