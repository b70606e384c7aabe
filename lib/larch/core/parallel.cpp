// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <sys/resource.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"

// Why not TBB: it ends the process when it cannot start or set up a thread of its own. Here a
// thread that cannot be had is left out, and nothing is allocated once a thread runs.
namespace larch {
namespace {

constexpr int kMaximumThreads = 1024;

/// One call of parallel_for.
class Loop {
 public:
  Loop(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body)
      : count_(count), grain_(grain), body_(body) {}

  /// Takes ranges until none is left or one has thrown.
  void work() noexcept {
    while (!failed_.load(std::memory_order_relaxed)) {
      const int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= count_) return;
      try {
        body_(begin, std::min(begin + grain_, count_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  // Guarded by the pool's lock.
  int wanted = 0;  ///< threads that may still join
  int inside = 0;  ///< threads that have joined and not left

 private:
  const int64_t count_, grain_;
  const std::function<void(int64_t, int64_t)>& body_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // read after all threads have left
};

/// Threads that wait for loops. They live as long as the process.
class Pool {
 public:
  static Pool& instance() {
    static auto* const pool = new Pool;  // never destroyed: its threads wait in it at exit
    return *pool;
  }

  /// Runs the loop in the calling thread and up to `helpers` others.
  void run(Loop& loop, int helpers) {
    const bool is_outermost = !in_loop_;  // a thread is counted once
    int called = helpers, woken = 0;
    {
      const std::lock_guard lock(mutex_);
      if (most_ == 0) called = std::min(helpers, start(helpers + wanted_));
      if (called > 0) open_.push_back(&loop);
      loop.wanted = called;
      wanted_ += called;
      callers_ += is_outermost ? 1 : 0;
      woken = most_ == 0 ? called : std::clamp(most_ - at_work(), 0, called);
    }
    in_loop_ = true;
    for (int i = 0; i < woken; ++i) came_.notify_one();
    loop.work();
    std::unique_lock lock(mutex_);
    if (loop.wanted > 0) {
      wanted_ -= loop.wanted;
      open_.erase(std::find(open_.begin(), open_.end(), &loop));
    }
    left_.wait(lock, [&] { return loop.inside == 0; });
    in_loop_ = !is_outermost;
    callers_ -= is_outermost ? 1 : 0;
    if (!open_.empty()) came_.notify_one();  // a loop may now have one more
  }

  /// Starts threads until `threads` of them exist, and lets no more help from now on. Returns how
  /// many do.
  int reserve(int threads) {
    const std::lock_guard lock(mutex_);
    most_ = threads + 1;
    while (started_ < threads && start_one()) {
    }
    return started_;
  }

 private:
  int at_work() const { return callers_ + started_ - idle_; }

  /// Starts threads until `idle` of them are idle, if it can. Returns how many are idle.
  int start(int idle) {
    while (idle_ < idle && started_ < kMaximumThreads && start_one()) {
    }
    return idle_;
  }

  bool start_one() {
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {  // of the system, or for want of memory
      return false;
    }
    ++started_;
    ++idle_;
    return true;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    in_loop_ = true;
    while (true) {
      came_.wait(lock, [this] { return !open_.empty() && (most_ == 0 || at_work() < most_); });
      Loop& loop = *open_.front();
      --wanted_;
      --idle_;
      ++loop.inside;
      if (--loop.wanted == 0) open_.pop_front();
      lock.unlock();
      loop.work();
      lock.lock();
      ++idle_;
      if (--loop.inside == 0) left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_, left_;
  std::deque<Loop*> open_;  // loops that wait for threads, the oldest first
  int most_ = 0;            // threads in loops side by side, callers included; 0: no bound
  int callers_ = 0;         // that are no threads of the pool
  static thread_local bool in_loop_;
  int started_ = 0;
  int idle_ = 0;    // threads outside of loops
  int wanted_ = 0;  // sum over the open loops
};

thread_local bool Pool::in_loop_ = false;

}  // namespace

void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (threads <= 1 || count <= grain) {
    body(0, count);
    return;
  }
  Loop loop(count, grain, body);
  const int64_t ranges = (count - 1) / grain + 1;
  Pool::instance().run(loop, static_cast<int>(std::min<int64_t>(threads, ranges)) - 1);
  loop.rethrow();
}

void start_threads(int threads) {
  const int needed = std::min(threads, kMaximumThreads);
  const int possible = Pool::instance().reserve(needed - 1) + 1;
  if (possible < needed) throw MemoryError(out_of_threads_text(needed, possible));
}

std::string out_of_threads_text(int needed, int possible) {
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  const HostMemory free = free_host_memory();
  const std::string processes =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
  const std::string numbers =
      needed == 0 ? "one more needed, none possible"
                  : std::to_string(needed) + " needed, " + std::to_string(possible) + " possible";
  return "out of threads: " + numbers + " (ulimit -u: " + processes + "; " +
         std::to_string(free.bytes) + " bytes free, " + free.limit +
         "): give fewer --threads, or raise the limit";
}

}  // namespace larch
