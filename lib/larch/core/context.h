// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "larch/core/device.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"

namespace larch {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

class Turn;

/// Everything an operation may know about the run it is part of. An argument, never a global.
struct Context {
  Device device{};
  int threads = 1;
  uint64_t seed = 0;
  /// Receives log lines; may be empty.
  std::function<void(LogLevel, std::string_view)> log_sink{};
  /// Receives progress of the run as a fraction 0..1 with a short phrase; may be empty.
  std::function<void(double, std::string_view)> progress_sink{};
  /// Receives the SHA-256 of the bytes that were read of an input file; may be empty.
  DigestSink digest_sink{};
  /// Set by a signal handler to the exit code wanted (130 or 143); 0 = go on. May be null.
  const std::atomic<int>* stop = nullptr;
  /// Cards beside `device` that a list may use, a case at a time.
  std::vector<Device> more_devices{};
  /// Where several jobs share the device: waits until it is the turn of this one, which has a share
  /// of the threads until then. Empty: the job has all for itself.
  std::function<Turn()> wait_for_turn{};

  Turn turn() const;
  void log(LogLevel level, std::string_view text) const {
    if (log_sink) log_sink(level, text);
  }
  void info(std::string_view text) const { log(LogLevel::kInfo, text); }
  void warn(std::string_view text) const { log(LogLevel::kWarning, text); }
  void debug(std::string_view text) const { log(LogLevel::kDebug, text); }
  void progress(double fraction, std::string_view phrase) const {
    if (progress_sink) progress_sink(fraction, phrase);
  }
  bool stop_requested() const { return stop != nullptr && stop->load() != 0; }
  /// Throws Stopped with this message if a stop is requested.
  void throw_if_stopped(const std::string& message) const {
    if (stop_requested()) throw Stopped(message, static_cast<ExitCode>(stop->load()));
  }
};

/// The right to use the device and threads, as its context says; held until the object ends.
class Turn {
 public:
  /// `held`: what the turn keeps from others until it ends.
  explicit Turn(Context context, std::shared_ptr<void> held = {})
      : context_(std::move(context)), held_(std::move(held)) {}
  const Context& context() const { return context_; }

 private:
  Context context_;
  std::shared_ptr<void> held_;
};

inline Turn Context::turn() const {
  return wait_for_turn ? wait_for_turn() : Turn(*this);
}

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
