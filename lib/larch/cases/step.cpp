// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/step.h"

#include "larch/core/error.h"

namespace larch::cases {

Step::Step(StepSeconds& seconds, std::string name, double part, const Context& context)
    : seconds_(seconds), name_(std::move(name)), start_(std::chrono::steady_clock::now()) {
  context.progress(part, name_);
  if (context.stop_requested()) {
    throw Stopped("stopped before " + name_, static_cast<ExitCode>(context.stop->load()));
  }
}

Step::~Step() {
  seconds_.emplace_back(name_, seconds_since(start_));
}

}  // namespace larch::cases
