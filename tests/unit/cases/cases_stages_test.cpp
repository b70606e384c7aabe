// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch2/catch.hpp"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/cases/stages.h"
#include "larch/core/error.h"

namespace larch::cases {
namespace {

using std::chrono::milliseconds;

const std::function<bool()> kNever = [] { return false; };

/// Notes what happens to each item.
struct Record {
  std::mutex mutex;
  std::vector<std::vector<char>> steps;
  size_t in_flight = 0, most_in_flight = 0;
  int64_t bytes = 0, most_bytes = 0;

  explicit Record(size_t count) : steps(count) {}
  void step(size_t item, char what) {
    const std::lock_guard lock(mutex);
    steps[item].push_back(what);
  }
  void enter(int64_t size) {
    const std::lock_guard lock(mutex);
    most_in_flight = std::max(most_in_flight, ++in_flight);
    most_bytes = std::max(most_bytes, bytes += size);
  }
  void leave(int64_t size) {
    const std::lock_guard lock(mutex);
    --in_flight;
    bytes -= size;
  }
};

/// Where two threads wait for each other, a minute at most.
class Meeting {
 public:
  /// False if the other one did not come.
  bool meet() {
    std::unique_lock lock(mutex_);
    ++here_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return here_ >= 2; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
};

MemoryNeed all_along(int64_t bytes) {
  return {bytes, bytes, bytes, bytes, bytes};
}

Stages noting(Record& record, int64_t bytes = 1) {
  return {[=](size_t) { return all_along(bytes); },
          [&record, bytes](size_t i) {
            record.enter(bytes);
            record.step(i, 'r');
            return true;
          },
          [&record](size_t i) {
            record.step(i, 'c');
            return true;
          },
          {},
          [&record, bytes](size_t i, const Grow&) {
            record.step(i, 'f');
            record.leave(bytes);
            return true;
          }};
}

TEST_CASE("stages: each item passes each stage once, in order, whatever the threads") {
  for (const int readers : {0, 1, 3}) {
    for (const int finishers : {1, 4}) {
      Record record(57);
      run_stages(57, noting(record), {readers, finishers, 3, 2, INT64_MAX}, kNever);
      for (const auto& steps : record.steps) CHECK(steps == std::vector<char>{'r', 'c', 'f'});
      CHECK(record.most_in_flight <= 5);
    }
  }
  run_stages(0, Stages{}, {2, 2, 4, 4, 10}, kNever);
}

TEST_CASE("stages: memory is bounded, and an item that is too large goes alone") {
  Record record(20);
  run_stages(20, noting(record, 10), {3, 3, 4, 4, 35}, kNever);
  CHECK(record.most_bytes <= 30);
  Record large(6);
  run_stages(6, noting(large, 100), {3, 3, 4, 4, 35}, kNever);
  CHECK(large.most_in_flight == 1);
  for (const auto& steps : large.steps) CHECK(steps.size() == 3);
}

TEST_CASE("stages: reading and finishing go on beside the computation") {
  // The next item is read and the one before is finished while an item is computed: each of the
  // two waits within its stage until the other is within its own.
  Meeting reading, finishing;
  std::atomic<bool> met_reading = true, met_finishing = true;
  const auto meet = [](Meeting& meeting, std::atomic<bool>& met) {
    if (!meeting.meet()) met = false;
  };
  const Stages stages{[](size_t) { return all_along(1); },
                      [&](size_t i) {
                        if (i == 1) meet(reading, met_reading);
                        return true;
                      },
                      [&](size_t i) {
                        if (i == 0) meet(reading, met_reading);
                        if (i == 1) meet(finishing, met_finishing);
                        return true;
                      },
                      {},
                      [&](size_t i, const Grow&) {
                        if (i == 0) meet(finishing, met_finishing);
                        return true;
                      }};
  run_stages(5, stages, {1, 1, 2, 2, INT64_MAX}, kNever);
  CHECK(met_reading);
  CHECK(met_finishing);
}

TEST_CASE("stages: without threads of their own the stages take turns, and waiting is counted") {
  std::atomic<int> busy = 0, most = 0;
  const auto nap = [&] {
    most = std::max(most.load(), ++busy);
    std::this_thread::sleep_for(milliseconds(5));
    --busy;
    return true;
  };
  const Stages stages{[](size_t) { return all_along(1); },
                      [&](size_t) { return nap(); },
                      [&](size_t) { return nap(); },
                      {},
                      [&](size_t, const Grow&) { return nap(); }};
  const StageTimes alone = run_stages(4, stages, {0, 0, 2, 2, INT64_MAX}, kNever);
  CHECK(most == 1);
  CHECK(alone.seconds >= 4 * 0.015);
  CHECK(alone.waited_for_reading >= 4 * 0.005);
}

TEST_CASE("stages: items that end early, a stop, and exceptions") {
  for (const int readers : {0, 2}) {
    Record record(30);
    Stages stages = noting(record);
    stages.read = [&](size_t i) {
      record.step(i, 'r');
      return i % 3 != 0;
    };
    stages.compute = [&](size_t i) {
      record.step(i, 'c');
      return i % 3 != 1;
    };
    run_stages(30, stages, {readers, 1, 2, 2, INT64_MAX}, kNever);
    for (size_t i = 0; i < 30; ++i) CHECK(record.steps[i].size() == 1 + i % 3);

    std::atomic<bool> stop = false;
    std::atomic<int> computed = 0, finished = 0;
    stages.read = [](size_t) { return true; };
    stages.compute = [&](size_t) {
      if (++computed == 5) stop = true;
      return true;
    };
    stages.finish = [&](size_t, const Grow&) { return ++finished > 0; };
    run_stages(30, stages, {readers, 1, 2, 2, INT64_MAX}, [&] { return stop.load(); });
    CHECK(computed == 5);
    CHECK(finished == 5);

    for (const int where : {0, 1, 2}) {
      const auto fail = [where](int here, size_t i) {
        if (here == where && i == 7) throw std::runtime_error("seven");
        return true;
      };
      stages.read = [&](size_t i) { return fail(0, i); };
      stages.compute = [&](size_t i) { return fail(1, i); };
      stages.finish = [&](size_t i, const Grow&) { return fail(2, i); };
      CHECK_THROWS_WITH(run_stages(30, stages, {readers, 2, 2, 2, INT64_MAX}, kNever), "seven");
    }
  }
}

TEST_CASE("stages: finishing takes no more than there is, and as many at a time as fit") {
  for (const int64_t worst : {40, 90, 300}) {  // 300: more than all; what it really takes fits
    std::mutex mutex;
    int64_t held = 0, most = 0;
    size_t surveyed = 0, finished = 0;
    const auto change = [&](int64_t bytes) {
      const std::lock_guard lock(mutex);
      most = std::max(most, held += bytes);
    };
    const Stages stages{[=](size_t) {
                          return MemoryNeed{10, 20, 15, worst, 5};
                        },
                        [](size_t) { return true; }, [](size_t) { return true; },
                        [&](size_t i) -> int64_t {
                          const std::lock_guard lock(mutex);
                          ++surveyed;
                          return i % 7 == 3 ? -1 : 30;  // three of the items end there
                        },
                        [&](size_t, const Grow&) {
                          change(30);
                          std::this_thread::sleep_for(milliseconds(10));
                          change(-30);
                          const std::lock_guard lock(mutex);
                          ++finished;
                          return true;
                        }};
    run_stages(21, stages, {2, 6, 4, 7, 100}, kNever);
    CHECK(most <= 100);
    CHECK(finished >= 18);
    if (worst == 300) {
      CHECK(surveyed == 21);
      CHECK(finished == 18);
    }
    // One after the other only those that may not fit are surveyed.
    surveyed = finished = 0;
    run_stages(21, stages, {0, 0, 2, 2, 100}, kNever);
    CHECK(surveyed == (worst == 300 ? 21 : 0));
    CHECK(finished == (worst == 300 ? 18 : 21));
  }
}

TEST_CASE("stages: an item that turns out to need more gets it, or is done again alone") {
  for (const int readers : {0, 2}) {
    for (const int64_t wanted : {20, 60, 97, 500}) {  // 97: beside no other; 500: more than all
      Record record(15);
      std::atomic<int> refused = 0;
      Stages stages = noting(record);
      stages.need = [](size_t) { return MemoryNeed{10, 20, 0, 15, 5}; };
      std::atomic<bool> is_beside_another = readers == 0;
      stages.read = [&, read = stages.read](size_t i) {
        if (i == 1) is_beside_another = true;
        return read(i);
      };
      stages.finish = [&](size_t i, const Grow& grow) {
        while (i == 0 && !is_beside_another) std::this_thread::sleep_for(milliseconds(1));
        if (!grow(wanted)) {
          ++refused;
          record.leave(1);
          return false;
        }
        record.enter(wanted);
        std::this_thread::sleep_for(milliseconds(1));
        record.leave(wanted);
        record.step(i, 'f');
        record.leave(1);
        return true;
      };
      run_stages(15, stages, {readers, 6, 4, 7, 100}, kNever);
      CHECK(record.most_bytes <= std::max<int64_t>(100, wanted) + 15);  // 1 per item in flight
      if (readers == 0) CHECK(refused == 0);
      if (readers > 0 && wanted == 500) CHECK(refused > 0);
      int passes = 0;
      for (const auto& steps : record.steps) {
        CHECK(steps.back() == 'f');
        CHECK(std::count(steps.begin(), steps.end(), 'f') == 1);
        passes += static_cast<int>(std::count(steps.begin(), steps.end(), 'r'));
      }
      CHECK(passes == 15 + refused);
    }
  }
}

TEST_CASE("stages: what a failing computation held is there for those that are to be finished") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(10);  // against a wait without end
    std::atomic<bool> computing_last = false;
    std::atomic<int> finished = 0;
    Stages stages;
    stages.need = [](size_t i) { return MemoryNeed{5, 60, 0, i == 1 ? 90 : 10, 5}; };
    stages.read = [](size_t) { return true; };
    stages.compute = [&](size_t i) {
      if (i < 2) return true;
      computing_last = true;
      throw std::runtime_error("two");
    };
    stages.finish = [&](size_t i, const Grow&) {
      // Item 1, which needs nearly all, has to wait until item 2 is computed.
      while (i == 0 && !computing_last) std::this_thread::sleep_for(milliseconds(1));
      return ++finished > 0;
    };
    try {
      run_stages(3, stages, {1, 1, 4, 4, 100}, kNever);
    } catch (const std::runtime_error&) {
      ::_exit(finished == 2 ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

#ifndef __SANITIZE_ADDRESS__  // which takes memory, and address space, of its own
TEST_CASE("stages: a thread that cannot be started ends the batch with its exception") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Room for some stacks of 8 MiB, not for all.
    rlimit limit{};
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    limit.rlim_cur = limit.rlim_max = pages * 4096 + (rlim_t{100} << 20);
    ::setrlimit(RLIMIT_AS, &limit);
    Record record(4);
    try {
      run_stages(4, noting(record), {40, 40, 42, 41, INT64_MAX}, kNever);
    } catch (const std::exception&) {
      ::_exit(0);
    }
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
#endif

}  // namespace
}  // namespace larch::cases
