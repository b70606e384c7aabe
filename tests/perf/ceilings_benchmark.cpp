// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <benchmark/benchmark.h>

#include "larch/core/dispatch.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/ceilings.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

constexpr Dispatch<double(cuda::GridBarrier, int32_t, const Context&)> kBarrier{
    "ceiling/grid_barrier", nullptr, LARCH_CUDA_FN(cuda::seconds_of_barrier)};
constexpr Dispatch<double(int32_t, const Context&)> kRead{"ceiling/read", nullptr,
                                                          LARCH_CUDA_FN(cuda::seconds_of_read)};
constexpr Dispatch<double(int64_t, const Context&)> kCopy{"ceiling/copy", nullptr,
                                                          LARCH_CUDA_FN(cuda::copy_rate)};

/// Five times, each after a first one that is not counted. `measure` returns seconds.
template <class Function>
void add(const std::string& name, const char* unit, const Function& measure) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 double value = 0;
                                 for (auto _ : state) {
                                   measure();
                                   value = measure();
                                   state.SetIterationTime(1e-3);
                                 }
                                 state.counters[unit] = value;
                               })
      ->UseManualTime()
      ->Iterations(1)
      ->Repetitions(5);
}

}  // namespace

void register_ceilings() {
  for (const Place& place : places()) {
    if (!place.context.device.is_cuda()) continue;
    const Context context = place.context;
    const Device& device = context.device;
    const auto barrier = [=](cuda::GridBarrier kind) {
      constexpr int32_t kCount = 2000;
      return [=] { return 1e6 * kBarrier(device, kind, kCount, context); };
    };
    add("ceiling/grid_barrier/cooperative/" + place.name, "us/barrier",
        barrier(cuda::GridBarrier::kCooperative));
    add("ceiling/grid_barrier/counter/" + place.name, "us/barrier",
        barrier(cuda::GridBarrier::kCounter));
    add("ceiling/read/" + place.name, "ns/read",
        [=] { return 1e9 * kRead(device, 100000, context); });
    add("ceiling/copy/" + place.name, "GB/s",
        [=] { return 1e-9 * kCopy(device, int64_t{1} << 31, context); });
  }
}

}  // namespace larch::perf
