// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include <benchmark/benchmark.h>

#include "larch/core/device.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

int main(int argc, char** argv) {
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (const auto& place : larch::perf::places()) {
      benchmark::AddCustomContext(place.name,
                                  larch::describe(place.context.device, place.context.threads));
    }
    larch::perf::register_integral();
    larch::perf::register_evaluate();
    larch::perf::register_boost();
    larch::perf::register_train();
    larch::perf::register_dsa();
    larch::perf::register_levelset();
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "larch-benchmarks: error: %s\n", error.what());
    return 1;
  }
}
