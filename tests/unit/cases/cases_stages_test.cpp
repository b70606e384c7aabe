// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch2/catch.hpp"

#include "larch/cases/stages.h"
#include "larch/core/error.h"
#include "larch/core/step.h"

namespace larch::cases {
namespace {

const std::function<bool()> kNever = [] { return false; };

/// How far the stages are; each is called by one thread.
struct Counts {
  std::atomic<size_t> read{0}, computed{0}, finished{0};
  std::atomic<bool> is_in_order{true};

  Stages stages() {
    return {[this](size_t i) { note(i, read); }, [this](size_t i) { note(i, computed); },
            [this](size_t i) { note(i, finished); }};
  }
  void note(size_t i, std::atomic<size_t>& stage) {
    if (i != stage || read > computed + 4 || computed > finished + 4) is_in_order = false;
    ++stage;
  }
};

TEST_CASE("stages: each item passes each stage once, in order, with few in between") {
  for (const bool overlap : {false, true}) {
    Counts counts;
    run_stages(57, counts.stages(), overlap, kNever);
    CHECK((counts.read == 57 && counts.computed == 57 && counts.finished == 57));
    CHECK(counts.is_in_order);
    run_stages(0, {}, overlap, kNever);
  }
}

TEST_CASE("stages: reading and finishing go on beside computing") {
  std::atomic<bool> next_is_read{false}, last_is_finished{false};
  Stages stages;
  stages.read = [&](size_t i) { next_is_read = i == 2; };
  stages.compute = [&](size_t i) {
    // A minute at most, against a wait without end.
    for (int k = 0; i == 1 && !(next_is_read && last_is_finished) && k < 60'000; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  stages.finish = [&](size_t i) { last_is_finished = i == 0 || last_is_finished; };
  run_stages(3, stages, /*overlap=*/true, kNever);
  CHECK((next_is_read && last_is_finished));
}

TEST_CASE("stages: after a stop what is computed is finished, and nothing more is computed") {
  for (const bool overlap : {false, true}) {
    Counts counts;
    run_stages(30, counts.stages(), overlap, [&] { return counts.computed == 5; });
    CHECK(counts.computed == 5);
    CHECK(counts.finished == 5);
  }
}

TEST_CASE("stages: an exception of any stage ends the queue and is rethrown") {
  for (const bool overlap : {false, true}) {
    for (const int stage : {0, 1, 2}) {
      Counts counts;
      Stages stages = counts.stages();
      auto& broken = stage == 0 ? stages.read : stage == 1 ? stages.compute : stages.finish;
      broken = [whole = broken](size_t i) {
        if (i == 7) throw std::runtime_error("seven");
        whole(i);
      };
      CHECK_THROWS_WITH(run_stages(30, stages, overlap, kNever), "seven");
      CHECK(counts.finished < 30);
    }
  }
}

TEST_CASE("a step tells its name and time, and does not begin once the run is to stop") {
  std::atomic<int> stop = 0;
  Context context;
  context.stop = &stop;
  StepSeconds seconds;
  { const Step first(seconds, "first", 0, context); }
  stop = 143;
  CHECK_THROWS_WITH(Step(seconds, "second", 0.5, context), "stopped before second");
  REQUIRE(seconds.size() == 1);
  CHECK(seconds[0].first == "first");
  CHECK(seconds[0].second >= 0);
}

}  // namespace
}  // namespace larch::cases
