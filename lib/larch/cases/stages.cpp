// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/stages.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "larch/cases/step.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;

/// Items between two stages at most.
constexpr size_t kBetween = 2;

/// How far the three stages are, which wait for each other.
class Progress {
 public:
  /// Waits until `ready` holds; false if the queue has ended before.
  template <class Ready>
  bool wait(Ready&& ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || ready(); });
    return !ended_;
  }
  void advance(size_t& stage) {
    const std::lock_guard lock(mutex_);
    ++stage;
    changed_.notify_all();
  }
  /// The computing stage ends after the items that it has done.
  void stop_computing() {
    const std::lock_guard lock(mutex_);
    no_more = true;
    changed_.notify_all();
  }
  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    ended_ = true;
    changed_.notify_all();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  size_t read = 0, computed = 0, finished = 0;  // guarded by the lock that wait() holds
  bool no_more = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr error_;
};

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
    at_.stop_computing();
    if (reader.joinable()) reader.join();
    if (finisher.joinable()) finisher.join();
    at_.rethrow();
    times_.waited_for_finishing += seconds_since(computed);
    times_.seconds = seconds_since(start);
    return times_;
  }

 private:
  template <class F>
  void guarded(F&& body) {
    try {
      body();
    } catch (...) {
      at_.fail(std::current_exception());
    }
  }
  void read_all() {
    for (size_t i = 0; i < count_; ++i) {
      bool over = false;
      const auto ready = [&] { return (over = at_.no_more) || i < at_.computed + kBetween; };
      if (!at_.wait(ready) || over) return;
      stages_.read(i);
      at_.advance(at_.read);
    }
  }
  void compute_all() {
    for (size_t i = 0; i < count_; ++i) {
      auto start = Clock::now();
      if (!at_.wait([&] { return at_.read > i; })) return;
      times_.waited_for_reading += seconds_since(start);
      start = Clock::now();
      if (!at_.wait([&] { return i < at_.finished + kBetween; })) return;
      times_.waited_for_finishing += seconds_since(start);
      if (stop_()) return;
      stages_.compute(i);
      at_.advance(at_.computed);
    }
  }
  void finish_all() {
    for (size_t i = 0; i < count_; ++i) {
      bool is_computed = false;
      const auto ready = [&] { return (is_computed = at_.computed > i) || at_.no_more; };
      if (!at_.wait(ready) || !is_computed) return;
      stages_.finish(i);
      at_.advance(at_.finished);
    }
  }

  const size_t count_;
  const Stages& stages_;
  const std::function<bool()>& stop_;
  Progress at_;
  StageTimes times_;
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
