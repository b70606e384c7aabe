// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/overlap.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace larch::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the threads of a batch share; one lock is enough, since the stages are long.
class Overlap {
 public:
  Overlap(size_t count, const Stages& stages, const OverlapLimits& limits,
          const std::function<bool()>& stop)
      : count_(count), stages_(stages), limits_(limits), stop_(stop), bytes_(count, 0) {}

  OverlapTimes run() {
    const auto start = Clock::now();
    readers_left_ = limits_.readers;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(limits_.readers) + static_cast<size_t>(limits_.finishers));
    for (int i = 0; i < limits_.readers; ++i) {
      threads.emplace_back([this] {
        guarded([this] { read_all(); });
        const std::lock_guard lock(mutex_);
        --readers_left_;
        changed_.notify_all();
      });
    }
    for (int i = 0; i < limits_.finishers; ++i) {
      threads.emplace_back([this] { guarded([this] { finish_all(); }); });
    }
    guarded([this] { compute_all(); });
    const auto computed = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      computing_over_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    times_.waited_for_finishing += seconds_since(computed);
    times_.seconds = seconds_since(start);
    return times_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  template <class F>
  void guarded(F&& f) {
    try {
      f();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  bool stopping() const { return error_ || stop_(); }

  /// A signal handler cannot wake anybody, so nobody sleeps for long.
  void sleep(Lock& lock) { changed_.wait_for(lock, std::chrono::milliseconds(50)); }

  /// An item leaves, from those ahead of the computation or from those behind it.
  void release(size_t item, size_t& place) {
    --place;
    bytes_in_flight_ -= bytes_[item];
    changed_.notify_all();
  }

  bool fits(int64_t bytes) const {
    if (ahead_ + behind_ == 0) return true;
    return ahead_ < limits_.ahead && bytes_in_flight_ + bytes <= limits_.bytes;
  }

  void read_all() {
    Lock lock(mutex_);
    while (next_ < count_ && !stopping()) {
      const size_t item = next_++;
      lock.unlock();
      const int64_t bytes = stages_.bytes(item);
      lock.lock();
      while (!fits(bytes) && !stopping()) sleep(lock);
      if (stopping()) return;
      bytes_[item] = bytes;
      bytes_in_flight_ += bytes;
      ++ahead_;
      ++reading_;
      lock.unlock();
      bool goes_on = false;
      guarded([&] { goes_on = stages_.read(item); });
      lock.lock();
      --reading_;
      if (goes_on) {
        ready_.push_back(item);
        changed_.notify_all();
      } else {
        release(item, ahead_);
      }
    }
  }

  /// Waits, on the account of reading or finishing, until an item can be computed or none will
  /// come.
  void await_item(Lock& lock) {
    while ((behind_ >= limits_.behind || (ready_.empty() && readers_left_ > 0)) && !stopping()) {
      const auto start = Clock::now();
      const bool held_up = behind_ >= limits_.behind || (reading_ == 0 && behind_ > 0);
      sleep(lock);
      (held_up ? times_.waited_for_finishing : times_.waited_for_reading) += seconds_since(start);
    }
  }

  void compute_all() {
    Lock lock(mutex_);
    while (true) {
      await_item(lock);
      if (ready_.empty() || stopping()) return;
      const size_t item = ready_.front();
      ready_.pop_front();
      lock.unlock();
      const bool goes_on = stages_.compute(item);
      lock.lock();
      if (goes_on) {
        --ahead_;
        ++behind_;
        computed_.push_back(item);
        changed_.notify_all();
      } else {
        release(item, ahead_);
      }
    }
  }

  void finish_all() {
    Lock lock(mutex_);
    while (true) {
      while (computed_.empty() && !computing_over_) sleep(lock);
      if (computed_.empty()) return;
      const size_t item = computed_.front();
      computed_.pop_front();
      lock.unlock();
      guarded([&] { stages_.finish(item); });
      lock.lock();
      release(item, behind_);
    }
  }

  const size_t count_;
  const Stages& stages_;
  const OverlapLimits& limits_;
  const std::function<bool()>& stop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> bytes_;           // of each item in flight
  std::deque<size_t> ready_, computed_;  // between the stages
  size_t next_ = 0, reading_ = 0;
  size_t ahead_ = 0, behind_ = 0;  // being read, ready or computed now; computed and not finished
  int64_t bytes_in_flight_ = 0;
  int readers_left_ = 0;
  bool computing_over_ = false;
  std::exception_ptr error_;
  OverlapTimes times_;
};

OverlapTimes one_after_the_other(size_t count, const Stages& stages,
                                 const std::function<bool()>& stop) {
  OverlapTimes times;
  const auto start = Clock::now();
  for (size_t item = 0; item < count && !stop(); ++item) {
    const auto begin = Clock::now();
    const bool was_read = stages.read(item);
    times.waited_for_reading += seconds_since(begin);
    if (!was_read || stop() || !stages.compute(item)) continue;
    const auto computed = Clock::now();
    stages.finish(item);
    times.waited_for_finishing += seconds_since(computed);
  }
  times.seconds = seconds_since(start);
  return times;
}

}  // namespace

OverlapTimes overlap(size_t count, const Stages& stages, const OverlapLimits& limits,
                     const std::function<bool()>& stop) {
  if (limits.readers == 0) return one_after_the_other(count, stages, stop);
  return Overlap(count, stages, limits, stop).run();
}

}  // namespace larch::pipeline
