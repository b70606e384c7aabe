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

/// From int16 voxels to the integral volume, both on the device.
void integrate(benchmark::State& state, int edge, const Context& context) {
  Volume<int16_t> volume(Grid{{edge, edge, edge}, {1, 1, 1}, {0, 0, 0}, {}});
  for (int64_t i = 0; i < volume.voxels(); ++i) {
    volume[i] = static_cast<int16_t>(static_cast<uint64_t>(i) * 2654435761u >> 7 & 1023);
  }
  const image::ChannelSpec channel;
  const auto layouts = image::layouts_for(volume.size(), {&channel, 1}, Vec3i{kPad, kPad, kPad});
  const Buffer<int16_t> voxels(
      context.device,
      std::span<const int16_t>(volume.data(), static_cast<size_t>(volume.voxels())));
  Buffer<uint32_t> out(context.device, static_cast<size_t>(image::total_elements(layouts)));
  uint32_t corner = 0;
  for (auto _ : state) {
    image::integrate_resident(voxels, volume.size(), {&channel, 1}, image::Padding::kClamp, layouts,
                              out, context);
    out.download({&corner, 1}, out.size() - 1);  // waits for the device
    benchmark::DoNotOptimize(corner);
  }
  state.SetItemsProcessed(state.iterations() * volume.voxels());
}

}  // namespace

void register_integral() {
  for (const Place& place : places()) {
    for (const int edge : {128, 256, 512}) {
      const std::string name = "integral/" + std::to_string(edge) + "/" + place.name;
      benchmark::RegisterBenchmark(name.c_str(), integrate, edge, place.context)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace larch::perf
