// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"

namespace larch {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The steps of a job with their seconds, in the order in which they ended.
using StepSeconds = std::vector<std::pair<std::string, double>>;

/// Adds the seconds that it lives to a sum, which must outlive it. Who measures work of a device
/// waits for it before.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds)
      : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() { seconds_ += seconds_since(start_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_;
};

/// A step of a job, which lasts as long as the object: its time goes to `seconds`, which must
/// outlive it.
class Step {
 public:
  /// `part`: the share of the job that is done before, for the progress. Throws Stopped if the stop
  /// flag of `context` is set.
  Step(StepSeconds& seconds, std::string name, double part, const Context& context)
      : seconds_(seconds), name_(std::move(name)), start_(std::chrono::steady_clock::now()) {
    context.progress(part, name_);
    context.throw_if_stopped("stopped before " + name_);
  }
  ~Step() { seconds_.emplace_back(name_, seconds_since(start_)); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  StepSeconds& seconds_;
  std::string name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace larch
