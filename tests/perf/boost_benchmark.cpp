// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "larch/core/device.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/features/linear/linear_source.h"
#include "larch/learning/boost.h"
#include "larch/pbt/train/train.h"
#include "larch/phantom/organs.h"
#include "larch/voxels/pool.h"
#include "larch/voxels/samples.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

constexpr size_t kSamples = 5000;

/// One node: the table of bins of all samples and features, then `rounds` rounds of boosting on it.
/// The price of a round is the difference between two numbers of rounds, over their difference.
void boost_node(benchmark::State& state, int features, int rounds, const Context& context) {
  static const auto volume = noise_and_blobs({96, 96, 96}, 4);
  const std::vector<voxels::TrainingVolume> volumes{volume};
  voxels::FeatureConfig config;
  config.pyramid_levels = 1;
  const auto channels = voxels::channel_specs(config);
  const auto pool = larch::features::make_haar_pool(
      {features, config.window, config.sizes, static_cast<int>(channels.size()), 1});
  auto images = voxels::load_training_images(volumes, channels, image::Padding::kClamp,
                                             features::reach_along(pool), context);
  const size_t whole = 0;
  auto samples = voxels::draw_samples(volumes, {&whole, 1}, {kSamples / 2, kSamples / 2}, 1);
  const auto places = voxels::place_samples(samples, images);
  std::vector<uint32_t> index(samples.size());
  std::iota(index.begin(), index.end(), 0u);
  const std::vector<double> weight(samples.size(), 1.0 / static_cast<double>(samples.size()));

  const auto columns = features::make_haar_columns(pool, images.common_layouts(), 0, context);
  const features::LinearSource source(columns, places);
  const std::span<const uint32_t> all(index);
  const auto maps = source.range(all.first(std::min<size_t>(all.size(), 4096)), context);
  const auto prepared = learning::prepare_all(source, maps, context);
  learning::BoostProblem problem;
  problem.columns = prepared.get();
  problem.samples = index;
  problem.positive = samples.positive;
  problem.weight = weight;
  problem.rounds = rounds;
  for (auto _ : state) {
    const auto winners = learning::boost(source, problem, context);
    benchmark::DoNotOptimize(winners.data());
  }
  state.counters["features"] = static_cast<double>(pool.size());
  state.counters["samples"] = static_cast<double>(samples.size());
  state.counters["updates"] =
      benchmark::Counter(static_cast<double>(pool.size() * samples.size()) * rounds,
                         benchmark::Counter::kIsIterationInvariantRate);
}

/// A whole tree of depth 6: 2500 + 2500 samples a node, 40 to 48 rounds, from volumes on the host.
void train_tree(benchmark::State& state, int features, const Context& context) {
  static const std::vector<voxels::TrainingVolume> volumes = [] {
    std::vector<voxels::TrainingVolume> all;
    for (int n = 1; n <= 4; ++n) all.push_back(noise_and_blobs({128, 128, 128}, n));
    return all;
  }();
  voxels::TrainConfig config;
  config.features.count = features;
  config.features.pyramid_levels = 1;
  config.samples = {60000, 60000};
  config.validation.fraction = 0;
  config.tree.worst_error = 0.5;
  double inner = 0;
  for (auto _ : state) {
    const pbt::Model model =
        pbt::train_trees(volumes, image::ModelSpace{}, config, {}, nullptr, context);
    inner =
        static_cast<double>(std::count_if(model.nodes.begin(), model.nodes.end(),
                                          [](const pbt::Node& node) { return !node.is_leaf(); }));
  }
  state.counters["inner_nodes"] = inner;
}

/// Classes that overlap, so that no node of a tree runs dry: a fifth of the organ's voxels becomes
/// background, and as many of the background organ.
void mix_classes(Volume<uint8_t>& classes, uint64_t seed) {
  const auto organ = static_cast<double>(std::count(classes.begin(), classes.end(), 1));
  const double share[2] = {0.2 * organ / (static_cast<double>(classes.voxels()) - organ), 0.2};
  for (int64_t i = 0; i < classes.voxels(); ++i) {
    if (hash_unit(seed, 1, static_cast<uint64_t>(i)) < share[classes[i]]) classes[i] ^= 1;
  }
}

/// Nine detectors of depth 6 on 300 volumes of make-samples, in memory: what Birkbeck et al.
/// trained in 6100 s. From volumes on the host, without reading files; a detector differs by its
/// seed.
void train_nine(benchmark::State& state, const Context& context) {
  constexpr size_t kNeeded = size_t{16} << 30;  // of either: the volumes, their integrals
  static const bool enough =
      free_memory_bytes(Device::cpu()) >= kNeeded && free_memory_bytes(context.device) >= kNeeded;
  if (!enough) {
    state.SkipWithError("needs 16 GiB on the host and on the device");
    return;
  }
  static const std::vector<voxels::TrainingVolume> volumes = [&] {
    std::vector<voxels::TrainingVolume> all(300);
    phantom::OrgansConfig organs;
    organs.size = {231, 161, 208};
    parallel_for(context.threads, 300, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        phantom::OrgansCase made = phantom::make_organs(organs, 1, static_cast<int>(n), 1);
        voxels::TrainingVolume& out = all[static_cast<size_t>(n)];
        out = {"organs", 0, std::move(made.image), Volume<uint8_t>(made.labels.grid()),
               std::to_string(n)};
        for (int64_t i = 0; i < out.voxels.voxels(); ++i) {
          out.voxels[i] = std::clamp<int16_t>(out.voxels[i], 0, 1023);
          out.classes[i] = made.labels[i] == 1 ? 1 : 0;
        }
        mix_classes(out.classes, static_cast<uint64_t>(n));
      }
    });
    return all;
  }();
  voxels::TrainConfig config;
  config.features.count = 50000;
  config.features.pyramid_levels = 1;
  config.samples = {2400 / 300, 140100 / 300};
  config.tree.worst_error = 0.5;
  config.tree.purity = 1;
  config.tree.min_samples = 2;
  config.tree.min_class_samples = 1;
  config.tree.routing_band = 0.5;  // every sample goes both ways: all 63 nodes have to be trained
  double inner = 0;
  for (auto _ : state) {
    inner = 0;
    for (uint64_t detector = 0; detector < 9; ++detector) {
      Context own = context;
      own.seed = detector;
      const pbt::Model model =
          pbt::train_trees(volumes, image::ModelSpace{}, config, {}, nullptr, own);
      inner +=
          static_cast<double>(std::count_if(model.nodes.begin(), model.nodes.end(),
                                            [](const pbt::Node& node) { return !node.is_leaf(); }));
    }
  }
  state.counters["inner_nodes"] = inner;
}

}  // namespace

void register_train() {
  for (const Place& place : places()) {
    const std::string name = "train/features:50000/" + place.name;
    benchmark::RegisterBenchmark(name.c_str(), train_tree, 50000, place.context)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseRealTime();
    if (!place.context.device.is_cuda()) continue;
    benchmark::RegisterBenchmark(("train/nine_detectors/volumes:300/" + place.name).c_str(),
                                 train_nine, place.context)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseRealTime();
  }
}

void register_boost() {
  for (const Place& place : places()) {
    for (const int features : {20000, 50000}) {
      for (const int rounds : {1, 11}) {
        const std::string name = "boost/features:" + std::to_string(features) +
                                 "/rounds:" + std::to_string(rounds) + "/" + place.name;
        benchmark::RegisterBenchmark(name.c_str(), boost_node, features, rounds, place.context)
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
    }
  }
}

}  // namespace larch::perf
