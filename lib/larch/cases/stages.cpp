// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/stages.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "larch/core/step.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;

/// Items between two stages at most.
constexpr size_t kBetween = 2;

class StageRunner {
 public:
  StageRunner(size_t count, const Stages& stages, const std::function<bool()>& stop)
      : count_(count), stages_(stages), stop_(stop) {}

  StageTimes run() {
    const auto start = Clock::now();
    std::thread reader, finisher;
    guarded([&] {
      reader = std::thread([this] { guarded([this] { read_all(); }); });
      finisher = std::thread([this] { guarded([this] { finish_all(); }); });
      compute_all();
    });
    const auto computed = Clock::now();
    change([this] { is_computing_ = false; });
    if (reader.joinable()) reader.join();
    if (finisher.joinable()) finisher.join();
    if (error_) std::rethrow_exception(error_);
    times_.waited_for_finishing += seconds_since(computed);
    times_.seconds = seconds_since(start);
    return times_;
  }

 private:
  template <class F>
  void change(F&& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }
  /// Waits until `ready` holds; false if a stage has failed before.
  template <class F>
  bool wait(F&& ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ != nullptr || ready(); });
    return !error_;
  }
  template <class F>
  void guarded(F&& body) {
    try {
      body();
    } catch (...) {
      change([&] { error_ = error_ ? error_ : std::current_exception(); });
    }
  }
  void read_all() {
    for (size_t i = 0; i < count_; ++i) {
      bool is_over = false;
      const auto ready = [&] { return (is_over = !is_computing_) || i < computed_ + kBetween; };
      if (!wait(ready) || is_over) return;
      stages_.read(i);
      change([this] { ++read_; });
    }
  }
  void compute_all() {
    for (size_t i = 0; i < count_; ++i) {
      auto start = Clock::now();
      if (!wait([&] { return read_ > i; })) return;
      times_.waited_for_reading += seconds_since(start);
      start = Clock::now();
      if (!wait([&] { return i < finished_ + kBetween; })) return;
      times_.waited_for_finishing += seconds_since(start);
      if (stop_()) return;
      stages_.compute(i);
      change([this] { ++computed_; });
    }
  }
  void finish_all() {
    for (size_t i = 0; i < count_; ++i) {
      bool is_computed = false;
      const auto ready = [&] { return (is_computed = computed_ > i) || !is_computing_; };
      if (!wait(ready) || !is_computed) return;
      stages_.finish(i);
      change([this] { ++finished_; });
    }
  }

  const size_t count_;
  const Stages& stages_;
  const std::function<bool()>& stop_;
  StageTimes times_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // How far the stages are, which wait for each other; guarded by the mutex.
  size_t read_ = 0, computed_ = 0, finished_ = 0;
  bool is_computing_ = true;
  std::exception_ptr error_;
};

StageTimes run_alone(size_t count, const Stages& stages, const std::function<bool()>& stop) {
  StageTimes times;
  const auto start = Clock::now();
  for (size_t i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    stages.read(i);
    times.waited_for_reading += seconds_since(begin);
    if (stop()) break;
    stages.compute(i);
    const auto computed = Clock::now();
    stages.finish(i);
    times.waited_for_finishing += seconds_since(computed);
  }
  times.seconds = seconds_since(start);
  return times;
}

}  // namespace

StageTimes run_stages(size_t count, const Stages& stages, bool overlap,
                      const std::function<bool()>& stop) {
  if (!overlap) return run_alone(count, stages, stop);
  return StageRunner(count, stages, stop).run();
}

}  // namespace larch::cases
