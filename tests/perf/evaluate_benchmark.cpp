// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "larch/image/integral.h"
#include "larch/pbt/evaluate.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

/// From the integral volume on the device to probabilities on the host; a volume of the size that
/// the seeds time (140 x 101 x 144).
void evaluate(benchmark::State& state, const pbt::EvaluateConfig& config, const Context& context) {
  static const pbt::Model model = synthetic_model();
  static const auto volume = noise_and_blobs({140, 101, 144}, 3);
  const auto set = image::integral_set(volume.voxels.view(), model.channels, model.padding,
                                       model.reach(), context);
  for (auto _ : state) {
    const auto probability =
        pbt::evaluate<uint16_t>(model, set, volume.voxels.grid(), config, context);
    benchmark::DoNotOptimize(probability.data());
  }
  state.SetItemsProcessed(state.iterations() * volume.voxels.voxels());
}

}  // namespace

void register_evaluate() {
  pbt::EvaluateConfig tile, stack, hard, early;
  tile.walk = pbt::Walk::kTile;
  stack.walk = pbt::Walk::kStack;
  hard.hard = true;
  early.early_rejection = true;
  early.e1 = 0.01;
  const std::pair<const char*, pbt::EvaluateConfig> variants[] = {
      {"tile", tile}, {"stack", stack}, {"hard", hard}, {"early_rejection_e1_0.01", early}};
  for (const Place& place : places()) {
    for (const auto& [variant, config] : variants) {
      const std::string name = std::string("evaluate/") + variant + "/" + place.name;
      benchmark::RegisterBenchmark(name.c_str(), evaluate, config, place.context)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace larch::perf
