// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "larch/image/integral.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

constexpr int kPad = 9;

/// From int16 voxels on the host to the integral volume on the device.
void integrate(benchmark::State& state, int edge, const Context& context) {
  const auto volume = noise_and_blobs({edge, edge, edge}, 2);
  const image::ChannelSpec channel;
  const auto layouts = image::layouts_for(volume.voxels.size(), {&channel, 1}, kPad);
  Buffer<uint32_t> out(context.device, static_cast<size_t>(image::total_elements(layouts)));
  uint32_t corner = 0;
  for (auto _ : state) {
    image::integrate(volume.voxels.view(), {&channel, 1}, image::Padding::kClamp, layouts, out,
                     context);
    out.download({&corner, 1}, out.size() - 1);  // waits for the device
    benchmark::DoNotOptimize(corner);
  }
  state.SetItemsProcessed(state.iterations() * volume.voxels.voxels());
}

}  // namespace

void register_integral() {
  for (const Place& place : places()) {
    for (const int edge : {128, 256}) {
      const std::string name = "integral/" + std::to_string(edge) + "/" + place.name;
      benchmark::RegisterBenchmark(name.c_str(), integrate, edge, place.context)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace larch::perf
