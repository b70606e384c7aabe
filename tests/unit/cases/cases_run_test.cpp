// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/cases/run_cases.h"
#include "larch/cases/step.h"
#include "larch/core/error.h"

namespace larch::cases {
namespace {

std::vector<Case> numbered(int count) {
  std::vector<Case> cases;
  cases.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) cases.push_back({std::to_string(i), "image", ""});
  return cases;
}

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

TEST_CASE("cases without a folder: each is read and computed once, whatever the threads") {
  for (const int threads : {1, 2, 8}) {
    std::vector<int> results(40, 0);
    CaseSteps<int> steps;
    steps.bytes = [](size_t) { return MemoryNeed{}; };
    steps.read = [](size_t i, const Context&) { return static_cast<int>(i); };
    steps.compute = [&](size_t i, const int& job, const Context& all) {
      CHECK(all.threads == threads);
      results[i] += job + 1;
    };
    run_cases({numbered(40)}, steps, with_threads(threads));
    for (int i = 0; i < 40; ++i) CHECK(results[static_cast<size_t>(i)] == i + 1);
  }
}

TEST_CASE("cases without a folder: of two that fail, the first of the list is told") {
  std::atomic<bool> third_failed = false;
  CaseSteps<int> steps;
  steps.bytes = [](size_t) { return MemoryNeed{}; };
  steps.read = [&](size_t i, const Context&) -> int {
    if (i == 3) {
      third_failed = true;
      throw InputError("case 3");
    }
    // Case 1 fails later than case 3; a minute at most, against a wait without end.
    for (int k = 0; i == 1 && !third_failed && k < 60'000; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (i == 1) throw InputError("case 1");
    return 0;
  };
  steps.compute = [](size_t, int&, const Context&) {};
  CHECK_THROWS_WITH(run_cases({numbered(4)}, steps, with_threads(8)), "case 1");
  CHECK(third_failed);
}

TEST_CASE("cases without a folder: a stop ends the run and says how far it came") {
  std::atomic<int> stop = 0;
  Context context = with_threads(1);
  context.stop = &stop;
  CaseSteps<int> steps;
  steps.bytes = [](size_t) { return MemoryNeed{}; };
  steps.read = [](size_t, const Context& side) {
    CHECK(side.stop == nullptr);
    return 0;
  };
  steps.compute = [&](size_t i, int&, const Context&) {
    if (i == 1) stop = 143;
  };
  CHECK_THROWS_WITH(run_cases({numbered(4)}, steps, context),
                    "stopped after 2 of 4 cases; no output was written");
}

TEST_CASE("a step tells its name and time, and does not begin once the run is to stop") {
  std::atomic<int> stop = 0;
  Context context = with_threads(1);
  context.stop = &stop;
  StepSeconds seconds;
  { const Step first(seconds, "first", 0, context); }
  stop = 143;
  CHECK_THROWS_WITH(Step(seconds, "second", 0.5, context), "stopped before second");
  REQUIRE(seconds.size() == 1);
  CHECK(seconds[0].first == "first");
  CHECK(seconds[0].second >= 0);
}

TEST_CASE("cases with a folder are never ok without files") {
  CaseSteps<int> steps;
  steps.bytes = [](size_t) { return MemoryNeed{}; };
  steps.read = [](size_t, const Context&) { return 0; };
  steps.compute = [](size_t, int&, const Context&) {};
  CaseRun run{numbered(1)};
  run.folder.emplace();
  CHECK_THROWS_AS(run_cases(run, steps, with_threads(1)), std::logic_error);
}

TEST_CASE("cases: what takes more than the promise at least is not read") {
  CaseSteps<int> steps;
  steps.bytes = [](size_t) { return MemoryNeed{.reading = 10, .least = 10}; };
  bool was_read = false;
  steps.read = [&](size_t, const Context&) {
    was_read = true;
    return 0;
  };
  steps.compute = [](size_t, int&, const Context&) {};
  CHECK_THROWS_AS(run_cases({numbered(1), 9}, steps, with_threads(1)), MemoryError);
  CHECK_THROWS_WITH(run_cases({numbered(1), 9}, steps, with_threads(1)),
                    Catch::StartsWith("case '0': reading"));
  CHECK_FALSE(was_read);
  CHECK_NOTHROW(run_cases({numbered(1), 10}, steps, with_threads(1)));
  CHECK(was_read);
}

}  // namespace
}  // namespace larch::cases
