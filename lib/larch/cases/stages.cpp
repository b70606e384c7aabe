// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/stages.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Who holds how much. Not locked by itself.
class Ledger {
 public:
  Ledger(size_t count, int64_t bytes) : accounts_(count), bytes_(bytes) {
    in_flight_.reserve(count);
  }

  /// Lets an item in, for reading; false if it has to wait.
  bool enter(size_t item, const MemoryNeed& need) {
    int64_t resting = need.resting, largest = need.most() - need.resting;
    for (const size_t other : in_flight_) {
      const MemoryNeed& theirs = accounts_[other].need;
      resting += theirs.resting;
      largest = std::max(largest, theirs.most() - theirs.resting);
    }
    const bool fits = resting + largest <= bytes_ && held_ + need.reading <= bytes_;
    if (!fits && !in_flight_.empty()) return false;
    in_flight_.push_back(item);
    accounts_[item].need = need;
    hold(item, need.reading);
    return true;
  }
  void leave(size_t item) {
    hold(item, 0);
    std::erase(in_flight_, item);
  }
  /// Takes what a stage of the item needs; false if it has to wait.
  bool take(size_t item, int64_t bytes) {
    const int64_t wanted = std::max(bytes, accounts_[item].held);
    if (held_ - accounts_[item].held + wanted > bytes_ && in_flight_.size() > 1) return false;
    hold(item, wanted);
    return true;
  }
  void rest(size_t item) { hold(item, accounts_[item].need.resting); }
  MemoryNeed& need(size_t item) { return accounts_[item].need; }

 private:
  struct Account {
    MemoryNeed need;  ///< of the stages that are still to come
    int64_t held = 0;
  };
  void hold(size_t item, int64_t bytes) {
    held_ += bytes - accounts_[item].held;
    accounts_[item].held = bytes;
  }

  std::vector<Account> accounts_;
  std::vector<size_t> in_flight_;
  int64_t bytes_;
  int64_t held_ = 0;
};

/// Leads one item through all stages in the calling thread.
void lead_alone(size_t item, const Stages& stages, const StageLimits& limits,
                const std::function<bool()>& stop, StageTimes& times) {
  const auto begin = Clock::now();
  const bool to_survey = stages.survey && stages.need(item).finishing > limits.bytes;
  const bool was_read = stages.read(item);
  times.waited_for_reading += seconds_since(begin);
  if (!was_read || stop() || !stages.compute(item)) return;
  const auto computed = Clock::now();
  if (!to_survey || stages.survey(item) >= 0) stages.finish(item, [](int64_t) { return true; });
  times.waited_for_finishing += seconds_since(computed);
}

/// What the threads of a batch share; one lock is enough, since the stages are long.
class StageRunner {
 public:
  StageRunner(size_t count, const Stages& stages, const StageLimits& limits,
              const std::function<bool()>& stop)
      : count_(count),
        stages_(stages),
        limits_(limits),
        stop_(stop),
        ledger_(count, limits.bytes),
        surveyed_(count, 0) {
    // An item that cannot be queued for want of memory would hold its bytes for ever.
    ready_.reserve(count);
    computed_.reserve(count);
    again_.reserve(count);
  }

  StageTimes run() {
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    guarded([&] { start_threads(threads); });
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
    for (const size_t item : again_) {
      if (stop_()) break;
      lead_alone(item, stages_, limits_, stop_, times_);
    }
    times_.seconds = seconds_since(start);
    return times_;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// Throws when the system has no more threads; those that were started are in `threads`.
  void start_threads(std::vector<std::thread>& threads) {
    threads.reserve(static_cast<size_t>(limits_.readers) + static_cast<size_t>(limits_.finishers));
    readers_left_ = limits_.readers;
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
  }

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
    ledger_.leave(item);
    changed_.notify_all();
  }
  /// An item waits for its next stage.
  void rest(size_t item, std::vector<size_t>& queue) {
    ledger_.rest(item);
    queue.push_back(item);
    changed_.notify_all();
  }

  void read_all() {
    Lock lock(mutex_);
    while (next_ < count_ && !stopping()) {
      const size_t item = next_++;
      lock.unlock();
      const MemoryNeed need = stages_.need(item);
      lock.lock();
      const auto enters = [&] {
        return (ahead_ < limits_.ahead || ahead_ + behind_ == 0) && ledger_.enter(item, need);
      };
      while (!stopping() && !enters()) sleep(lock);
      if (stopping()) return;
      ++ahead_;
      ++reading_;
      lock.unlock();
      bool goes_on = false;
      guarded([&] { goes_on = stages_.read(item); });
      lock.lock();
      --reading_;
      ledger_.need(item).reading = 0;
      if (goes_on) {
        rest(item, ready_);
      } else {
        release(item, ahead_);
      }
    }
  }

  /// Takes an item out of a queue, the first whose stage has the memory it needs.
  template <class Bytes>
  std::optional<size_t> take(std::vector<size_t>& queue, Bytes&& bytes) {
    for (auto at = queue.begin(); at != queue.end(); ++at) {
      const size_t item = *at;
      const std::optional<int64_t> wanted = bytes(item);
      if (!wanted || !ledger_.take(item, *wanted)) continue;
      queue.erase(at);
      return item;
    }
    return std::nullopt;
  }

  /// Waits, on the account of reading or finishing, until an item can be computed; nothing if none
  /// will come.
  std::optional<size_t> await_item(Lock& lock) {
    while (!stopping()) {
      const bool full = behind_ >= limits_.behind;
      const auto item = full ? std::nullopt : take(ready_, [this](size_t i) {
        return std::optional(ledger_.need(i).computing);
      });
      if (item) return item;
      if (ready_.empty() && readers_left_ == 0 && !full) break;
      const auto start = Clock::now();
      const bool held_up = full || !ready_.empty() || (reading_ == 0 && behind_ > 0);
      sleep(lock);
      (held_up ? times_.waited_for_finishing : times_.waited_for_reading) += seconds_since(start);
    }
    return std::nullopt;
  }

  void compute_all() {
    Lock lock(mutex_);
    while (const std::optional<size_t> item = await_item(lock)) {
      lock.unlock();
      bool goes_on = false;
      // An item that fails leaves like others: those behind it may need what it held to finish.
      guarded([&] { goes_on = stages_.compute(*item); });
      lock.lock();
      ledger_.need(*item).computing = 0;
      if (goes_on) {
        --ahead_;
        ++behind_;
        rest(*item, computed_);
      } else {
        release(*item, ahead_);
      }
    }
  }

  void finish_all() {
    Lock lock(mutex_);
    while (true) {
      if (computed_.empty() && computing_over_) return;
      const auto to_finish = take(computed_, [this](size_t i) {
        const int64_t bytes = ledger_.need(i).finishing;
        return to_survey(i) && bytes > limits_.bytes ? std::nullopt : std::optional(bytes);
      });
      if (to_finish) {
        finish_one(*to_finish, lock);
      } else if (!survey_one(lock)) {
        sleep(lock);
      }
    }
  }

  void finish_one(size_t item, Lock& lock) {
    const Grow grow = [&](int64_t bytes) {
      const std::lock_guard inner(mutex_);
      return ledger_.take(item, bytes);
    };
    lock.unlock();
    bool over = true;
    guarded([&] { over = stages_.finish(item, grow); });
    lock.lock();
    if (!over) again_.push_back(item);
    release(item, behind_);
  }

  bool to_survey(size_t item) const { return stages_.survey && surveyed_[item] == 0; }

  /// Finds out how much finishing an item takes, where the most it may take does not fit now.
  bool survey_one(Lock& lock) {
    const auto item = take(computed_, [this](size_t i) {
      return to_survey(i) ? std::optional(ledger_.need(i).surveying) : std::nullopt;
    });
    if (!item) return false;
    surveyed_[*item] = 1;
    lock.unlock();
    int64_t bytes = -1;
    guarded([&] { bytes = stages_.survey(*item); });
    lock.lock();
    MemoryNeed& need = ledger_.need(*item);
    need = {0, 0, 0, bytes, need.resting};
    if (bytes < 0) {
      release(*item, behind_);
    } else {
      rest(*item, computed_);
    }
    return true;
  }

  const size_t count_;
  const Stages& stages_;
  const StageLimits& limits_;
  const std::function<bool()>& stop_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Ledger ledger_;
  std::vector<uint8_t> surveyed_;
  std::vector<size_t> ready_, computed_;  // between the stages
  std::vector<size_t> again_;             // asked for more than there was beside the others
  size_t next_ = 0, reading_ = 0;
  size_t ahead_ = 0, behind_ = 0;  // being read, ready or computed now; computed and not finished
  int readers_left_ = 0;
  bool computing_over_ = false;
  std::exception_ptr error_;
  StageTimes times_;
};

StageTimes one_after_the_other(size_t count, const Stages& stages, const StageLimits& limits,
                               const std::function<bool()>& stop) {
  StageTimes times;
  const auto start = Clock::now();
  for (size_t item = 0; item < count && !stop(); ++item) {
    lead_alone(item, stages, limits, stop, times);
  }
  times.seconds = seconds_since(start);
  return times;
}

}  // namespace

StageTimes run_stages(size_t count, const Stages& stages, const StageLimits& limits,
                      const std::function<bool()>& stop) {
  if (limits.readers == 0) return one_after_the_other(count, stages, limits, stop);
  return StageRunner(count, stages, limits, stop).run();
}

}  // namespace larch::cases
