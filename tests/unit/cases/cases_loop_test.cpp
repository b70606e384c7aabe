// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/cases/case_loop.h"

namespace larch::cases {
namespace {

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

/// A loop over `count` cases of one voxel and no memory, whose failures do not end it.
CaseLoop loop_of(size_t count, std::function<void(size_t, const Context&)> work) {
  CaseLoop loop;
  loop.count = count;
  loop.size = [](size_t) { return CaseSize{1, 0}; };
  loop.work = std::move(work);
  loop.failed = [](size_t, const std::exception_ptr&) { return true; };
  return loop;
}

/// Counts those who are inside, and the most of them.
struct Inside {
  std::atomic<int> now{0}, most{0};
  void stay(int weight) {
    const int sum = now += weight;
    for (int seen = most; sum > seen && !most.compare_exchange_weak(seen, sum);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now -= weight;
  }
};

TEST_CASE("each case is done once, whatever the threads; small ones have turns side by side") {
  for (const int threads : {1, 2, 8}) {
    std::vector<std::atomic<int>> done(40);
    Inside turns;
    std::atomic<int> wrong{0};
    CaseLoop loop = loop_of(40, [&](size_t i, const Context& c) {
      if (c.threads != 1 || c.stop != nullptr) ++wrong;
      const Turn turn = c.turn();
      if (turn.context().threads != threads) ++wrong;
      turns.stay(i % 10 == 3 ? threads : 1);  // a large one has no other beside it
      ++done[i];
    });
    loop.size = [](size_t i) { return CaseSize{i % 10 == 3 ? 1 << 24 : 1, 0}; };
    run_case_loop(loop, with_threads(threads));
    for (const std::atomic<int>& times : done) CHECK(times == 1);
    CHECK(wrong == 0);
    CHECK(turns.most == threads);
  }
}

TEST_CASE("with a bound of memory cases have their turns one at a time") {
  Inside turns;
  CaseLoop loop = loop_of(20, [&](size_t, const Context& c) {
    const Turn turn = c.turn();
    turns.stay(1);
  });
  loop.memory_bytes = 1 << 30;
  run_case_loop(loop, with_threads(8));
  CHECK(turns.most == 1);
}

TEST_CASE("one case alone has all threads outside of its turn, too") {
  int threads = 0;
  run_case_loop(loop_of(1, [&](size_t, const Context& c) { threads = c.threads; }),
                with_threads(6));
  CHECK(threads == 6);
}

TEST_CASE("cases start while the sum of their memory fits; a larger one goes alone") {
  std::atomic<int64_t> held{0}, most{0};
  CaseLoop loop = loop_of(20, [&](size_t i, const Context&) {
    const int64_t bytes = i == 7 ? 900 : 100;
    const int64_t now = held += bytes;
    for (int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    held -= bytes;
  });
  loop.memory_bytes = 350;
  loop.size = [](size_t i) { return CaseSize{1, i == 7 ? 900 : 100}; };
  run_case_loop(loop, with_threads(8));
  CHECK(most == 900);  // nothing stood beside it
}

TEST_CASE("a case that lacks memory beside others is done again alone; alone it fails") {
  std::atomic<int> in_work{0}, tries{0};
  std::vector<size_t> failed;
  CaseLoop loop = loop_of(12, [&](size_t i, const Context&) {
    ++in_work;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const bool lacks = (i == 3 && in_work > 1) || i == 8;
    if (i == 3) ++tries;
    --in_work;
    if (lacks) throw std::bad_alloc();
  });
  loop.failed = [&](size_t i, const std::exception_ptr&) {
    failed.push_back(i);
    return true;
  };
  run_case_loop(loop, with_threads(8));
  CHECK(tries <= 2);
  CHECK(failed == std::vector<size_t>{8});
}

TEST_CASE("a peak of the process makes cases wait that a first guess let in together") {
  constexpr int64_t kBytes = int64_t{160} << 20;
  std::atomic<int> in_work{0}, ended{0}, most_at_end{0};
  CaseLoop loop = loop_of(8, [&](size_t, const Context&) {
    const int now = ++in_work;
    if (ended > 4) most_at_end = std::max<int>(most_at_end, now);
    {
      const std::vector<char> data(static_cast<size_t>(kBytes), 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (data[data.size() / 2] != 1) most_at_end = 99;
    }
    --in_work;
    ++ended;
  });
  loop.size = [](size_t) { return CaseSize{1 << 20, 1 << 20}; };
  loop.memory_bytes = 200 << 20;
  run_case_loop(loop, with_threads(4));
  CHECK(most_at_end == 1);
}

TEST_CASE("a failure of the device ends the loop, any other only its case") {
  std::atomic<int> done{0};
  const auto work = [&](size_t i, const Context&) {
    ++done;
    if (i == 2) throw InputError("two");
    if (i == 5) throw DeviceError("five");
  };
  CHECK_THROWS_WITH(run_case_loop(loop_of(1000, work), with_threads(1)), "five");
  CHECK(done == 6);
}

TEST_CASE("after a stop no case starts and none gets its turn") {
  std::atomic<int> stop = 0, started{0}, turns_after{0};
  Context context = with_threads(2);
  context.stop = &stop;
  const auto work = [&](size_t, const Context& c) {
    if (++started == 3) stop = 143;
    const bool is_stopped = stop != 0;
    const Turn turn = c.turn();
    if (is_stopped) ++turns_after;
  };
  run_case_loop(loop_of(100, work), context);
  CHECK(started < 100);
  CHECK(turns_after == 0);
}

}  // namespace
}  // namespace larch::cases
