// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/device.h"
#include "larch/features/linear/linear_source.h"
#include "larch/image/integral.h"
#include "larch/learning/boost.h"
#include "larch/learning/feature_source.h"
#include "larch/learning/matrix_votes.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/train/train.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"
#include "tests/unit/pbt/pbt_same_trees.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

const std::vector<image::ChannelSpec> kChannels{
    {image::ChannelKind::kIntensity, 0},   {image::ChannelKind::kIntensity, 2},
    {image::ChannelKind::kGaussian, 0},    {image::ChannelKind::kGradientMagnitude, 1},
    {image::ChannelKind::kLaplacian, 0},   {image::ChannelKind::kDerivativeX, 0},
    {image::ChannelKind::kDerivativeY, 1}, {image::ChannelKind::kDerivativeZ, 0}};

TEST_CASE("large copies to the device and back are exact, whatever their size", "[memory::copy]") {
  const Context gpu = cuda_context();
  // Words around the size from which pieces are pinned, of one piece, of two, and of several.
  constexpr size_t kMega = size_t{1} << 20;
  for (const size_t count :
       {kMega - 1, kMega, kMega + 1, 2 * kMega + 1, 4 * kMega + 1, 5 * kMega, 6 * kMega - 3}) {
    std::vector<uint32_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(hash64(1, count, i));
    const Buffer<uint32_t> there(gpu.device, std::span<const uint32_t>(values));
    CHECK(there.to_vector() == values);
  }
}

TEST_CASE("integral channels are the same bytes on both devices", "[image::integrate]") {
  const Context gpu = cuda_context();
  const Context cpu = fixtures::context_of(2);
  for (const Vec3i size : {Vec3i{33, 17, 9}, Vec3i{1, 1, 1}, Vec3i{70, 5, 31}}) {
    const Volume<int16_t> v = fixtures::noise_volume(size, 5, -500, 4095);
    for (const auto padding : {image::Padding::kClamp, image::Padding::kZero}) {
      const auto a = image::integral_set(v.view(), kChannels, padding, 6, cpu);
      const auto b = image::integral_set(v.view(), kChannels, padding, 6, gpu);
      CHECK(a.data.to_vector() == b.data.to_vector());
    }
  }
}

/// Samples, images and the columns of a pool on one device.
struct Bench {
  voxels::TrainingImages images;
  voxels::SampleSet samples;
  features::LinearColumns columns;
  features::SamplePlaces places;
  std::vector<learning::CodeMap> maps;
  std::shared_ptr<const learning::PreparedColumns> prepared;
  std::vector<uint32_t> index;

  features::LinearSource source() const { return {columns, places}; }
};

Bench make_bench(const std::vector<voxels::TrainingVolume>& volumes, int features,
                 const Context& context, int window = 7) {
  const std::vector<image::ChannelSpec> channels{{image::ChannelKind::kIntensity, 0},
                                                 {image::ChannelKind::kGradientMagnitude, 1}};
  // The small cases have fewer samples where much is read for each of them.
  const voxels::SampleConfig usual{300, 500}, few{30, 50};
  const voxels::SampleConfig samples = window > 7 ? sized(usual, few) : usual;
  Bench bench;
  features::HaarPoolSpec spec;
  spec.features = features;
  spec.window = window;
  spec.sizes = {1, 2, 3};
  spec.channels = 2;
  const auto haar = features::make_haar_pool(spec);
  bench.images =
      voxels::load_training_images(volumes, channels, image::Padding::kClamp,
                                   Vec3i{window / 2 + 1, window / 2 + 1, window / 2 + 1}, context);
  std::vector<size_t> all(volumes.size());
  for (size_t v = 0; v < all.size(); ++v) all[v] = v;
  bench.samples = voxels::draw_samples(volumes, all, samples, 3);
  bench.places = voxels::place_samples(bench.samples, bench.images);
  bench.columns = features::make_haar_columns(haar, bench.images.common_layouts(), 0.01, context);
  for (uint32_t i = 0; i < bench.samples.size(); i += 2) bench.index.push_back(i);
  bench.maps = bench.source().range(bench.index, context);
  bench.prepared = learning::prepare_all(bench.source(), bench.maps, context);
  return bench;
}

void check_same_rounds(const std::vector<std::vector<learning::BoostRound>>& a,
                       const std::vector<std::vector<learning::BoostRound>>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t n = 0; n < a.size(); ++n) {
    CAPTURE(n);
    REQUIRE(a[n].size() == b[n].size());
    for (size_t t = 0; t < a[n].size(); ++t) {
      CHECK(a[n][t].found == b[n][t].found);
      CHECK(a[n][t].feature == b[n][t].feature);
      CHECK(a[n][t].mask == b[n][t].mask);
      CHECK(a[n][t].total == b[n][t].total);
      CHECK(a[n][t].agreement == b[n][t].agreement);
      CHECK(a[n][t].bins.first_code == b[n][t].bins.first_code);
      CHECK(a[n][t].bins.shift == b[n][t].bins.shift);
    }
  }
}

TEST_CASE("ranges, rounds and votes are the same on both devices",
          "[features::range][features::prepare][features::fill][features::vote]"
          "[learning::boost][learning::matrix_votes]") {
  const Context gpu = cuda_context();
  const auto volumes = fixtures::hard_volumes(3);
  // The wider the window, the fewer samples share the fast memory in which features are computed;
  // the widest one finds no place there.
  for (const auto& [usual, window] :
       {std::pair{100, 7}, {1000, 7}, {300, 23}, {300, 29}, {300, 45}}) {
    CAPTURE(window);
    const int features = sized(usual, usual == 1000 ? 140 : 24);
    const Bench a = make_bench(volumes, features, fixtures::context_of(2), window);
    const Bench b = make_bench(volumes, features, gpu, window);
    REQUIRE(a.maps.size() == b.maps.size());
    CHECK(std::equal(a.maps.begin(), a.maps.end(), b.maps.begin(), learning::same_map));
    std::vector<uint8_t> positive;
    for (const uint32_t i : a.index) positive.push_back(a.samples.positive[i]);
    const std::vector<double> weight(a.index.size(), 1.0 / static_cast<double>(a.index.size()));
    for (const auto kind : {learning::WeakKind::kHist64, learning::WeakKind::kThreshold}) {
      learning::BoostProblem problem;
      problem.positive = positive;
      problem.weight = weight;
      problem.rounds = sized(12, 2);
      problem.kind = kind;
      problem.samples = a.index;
      for (const int bins : {learning::kBins, 9}) {
        if (test::small_tests() && window > 7 && bins != 9) continue;
        problem.bins = bins;
        problem.columns = a.prepared.get();
        const auto rounds_a = learning::boost(a.source(), problem, fixtures::context_of(2));
        problem.columns = b.prepared.get();
        const auto rounds_b = learning::boost(b.source(), problem, gpu);
        check_same_rounds({rounds_a}, {rounds_b});
        auto strong = learning::strong_classifier(rounds_a, 0.5, a.index.size());
        // Votes fill words of 32, and scores are summed over the words.
        for (size_t w = 0; strong.weaks.size() < 40; ++w) strong.weaks.push_back(strong.weaks[w]);
        const auto cpu = fixtures::context_of(2);
        const auto votes = learning::cast_votes(a.source(), strong.weaks, a.index, cpu);
        CHECK(votes.bits == learning::cast_votes(b.source(), strong.weaks, b.index, gpu).bits);
        std::vector<uint32_t> bits(votes.bits.size());
        learning::vote_through_matrix(b.source(), {strong.weaks, b.index, bits, {}}, gpu);
        CHECK(votes.bits == bits);
        CHECK(learning::strong_scores(a.source(), {{strong.weaks, a.index}}, cpu)[0] ==
              learning::strong_scores(b.source(), {{strong.weaks, b.index}}, gpu)[0]);
      }
    }
  }
}

/// Nodes of a level: of several sizes and numbers of rounds, one of a single sample, one with
/// features of its own. The largest one is split over blocks.
std::vector<learning::BoostProblem> level_of(const Bench& bench, std::span<const uint8_t> positive,
                                             std::span<const double> weight,
                                             const learning::PreparedColumns& some) {
  const std::array<std::array<size_t, 3>, 5> nodes{
      {{0, 1190, 9}, {100, 1, 4}, {200, 33, 12}, {5, 1000, 1}, {300, 64, 7}}};
  std::vector<learning::BoostProblem> problems;
  for (const auto& [first, count, rounds] : nodes) {
    learning::BoostProblem& problem = problems.emplace_back();
    problem.columns = bench.prepared.get();
    problem.samples = std::span(bench.index).subspan(first, count);
    problem.positive = positive.subspan(first, count);
    problem.weight = weight.subspan(first, count);
    problem.rounds = static_cast<int>(rounds);
  }
  problems.back().columns = &some;
  return problems;
}

TEST_CASE("the nodes of a level, boosted together, are the same on both devices",
          "[learning::boost]") {
  const Context gpu = cuda_context(), cpu = fixtures::context_of(2);
  const auto volumes = fixtures::hard_volumes(3);
  const int features = sized(1000, 150);
  const Bench a = make_bench(volumes, features, cpu);
  const Bench b = make_bench(volumes, features, gpu);
  REQUIRE(a.index.size() >= 1190);
  std::vector<uint8_t> positive;
  for (const uint32_t i : a.index) positive.push_back(a.samples.positive[i]);
  const std::vector<double> weight(a.index.size(), 1e-3);
  const std::vector<uint32_t> some{1, 5, 6, static_cast<uint32_t>(features) * 2 / 5,
                                   static_cast<uint32_t>(features) - 1};
  const auto boosted = [&](const Bench& bench, const std::vector<learning::CodeMap>& maps,
                           const Context& context) {
    const auto source = bench.source();
    const auto prepared = source.prepare({some, maps}, context);
    return learning::boost(source, level_of(bench, positive, weight, *prepared), context);
  };
  std::vector<learning::CodeMap> maps;
  maps.reserve(some.size());
  for (const uint32_t f : some) maps.push_back(a.maps[f]);
  check_same_rounds(boosted(a, maps, cpu), boosted(b, maps, gpu));
  // Features of a single value are never chosen: a node that has no others finds nothing.
  for (learning::CodeMap& map : maps) map.hi = map.lo;
  const auto nothing = boosted(b, maps, gpu);
  REQUIRE(nothing.back().size() == 1);
  CHECK_FALSE(nothing.back()[0].found);
  check_same_rounds(boosted(a, maps, cpu), nothing);
}

void check_evaluation(const pbt::Model& model, const Volume<int16_t>& v, const Context& gpu,
                      const pbt::EvaluateConfig& config, const Volume<uint8_t>* roi) {
  const Context cpu = fixtures::context_of(2);
  const auto a = image::integral_set(v.view(), model.channels, model.padding, model.reach(), cpu);
  const auto b = image::integral_set(v.view(), model.channels, model.padding, model.reach(), gpu);
  const Volume<float> p = pbt::evaluate({model, cpu.device}, a, v.grid(), config, cpu, roi);
  const Volume<float> q = pbt::evaluate({model, gpu.device}, b, v.grid(), config, gpu, roi);
  CHECK(std::memcmp(p.data(), q.data(), static_cast<size_t>(p.voxels()) * sizeof(float)) == 0);
}

TEST_CASE("evaluation is the same bytes on both devices, for every walk",
          "[pbt::plan][pbt::evaluate]") {
  const Context gpu = cuda_context();
  const Volume<int16_t> v = fixtures::noise_volume(sized<Vec3i>({37, 21, 18}, {33, 9, 5}), 9);
  Volume<uint8_t> roi(v.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = hash_below(1, 2, i, 3) != 0;
  for (const uint64_t seed : {1, 2, 3}) {
    fixtures::RandomTree spec;
    spec.depth = seed == 3 ? 9 : 5;
    spec.weaks = sized(20, 5);
    const pbt::Model model = fixtures::random_model(seed, spec);
    for (const pbt::Walk walk :
         {pbt::Walk::kAuto, pbt::Walk::kTile, pbt::Walk::kStack, pbt::Walk::kQueue}) {
      pbt::EvaluateConfig config;
      config.walk = walk;
      check_evaluation(model, v, gpu, config, nullptr);
      check_evaluation(model, v, gpu, config, &roi);
      check_evaluation(model, v, gpu, config, nullptr);
      config.hard = true;
      check_evaluation(model, v, gpu, config, &roi);
    }
  }
}

TEST_CASE("copies of tiles in shared memory, and taps that reach too far for one") {
  const Context gpu = cuda_context();
  const Volume<int16_t> v = fixtures::noise_volume(sized<Vec3i>({61, 30, 23}, {33, 9, 7}), 11);
  Volume<uint8_t> roi(v.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = hash_below(4, 2, i, 50) == 0;
  for (const int window : {3, 9, 17, 25, 41}) {
    if (test::small_tests() && window == 17) continue;
    fixtures::RandomTree spec;
    spec.depth = window == 9 ? 8 : 6;  // 8: queues in place of tiles
    spec.weaks = sized(30, 10);
    spec.window = window;
    spec.channels = {{image::ChannelKind::kIntensity, 0}};
    if (window == 3) {
      spec.channels.insert(spec.channels.end(), {{image::ChannelKind::kGradientMagnitude, 1},
                                                 {image::ChannelKind::kLaplacian, 0},
                                                 {image::ChannelKind::kIntensity, 4}});
    }
    const pbt::Model model = fixtures::random_model(7 + static_cast<uint64_t>(window), spec);
    const Volume<uint8_t> nowhere(v.grid(), 0);
    for (const pbt::Walk walk : {pbt::Walk::kTile, pbt::Walk::kQueue}) {
      pbt::EvaluateConfig config;
      config.walk = walk;
      check_evaluation(model, v, gpu, config, nullptr);
      check_evaluation(model, v, gpu, config, &roi);
      check_evaluation(model, v, gpu, config, &nowhere);
      config.hard = true;
      check_evaluation(model, v, gpu, config, nullptr);
    }
  }
}

TEST_CASE("an ensemble is the same bytes on both devices, for every walk") {
  const Context gpu = cuda_context();
  const Volume<int16_t> v = fixtures::noise_volume({33, 17, 12}, 13);
  Volume<uint8_t> roi(v.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = hash_below(5, 2, i, 20) == 0;
  pbt::Model ensemble = fixtures::random_ensemble(8, 4);
  pbt::Model leaf = pbt::extract_tree(ensemble, 0);  // a tree that is one leaf among the others
  leaf.nodes.resize(1);
  leaf.nodes[0].left = leaf.nodes[0].right = -1;
  leaf.nodes[0].n_weak = 0;
  pbt::append_tree(ensemble, leaf);
  for (const pbt::Walk walk :
       {pbt::Walk::kAuto, pbt::Walk::kTile, pbt::Walk::kStack, pbt::Walk::kQueue}) {
    pbt::EvaluateConfig config;
    config.walk = walk;
    check_evaluation(ensemble, v, gpu, config, nullptr);
    check_evaluation(ensemble, v, gpu, config, &roi);
    check_evaluation(ensemble, v, gpu, config, nullptr);
  }
}

void check_training(const std::vector<voxels::TrainingVolume>& volumes,
                    const voxels::TrainConfig& config, const Context& gpu) {
  const auto space = fixtures::space_of(config);
  const pbt::Model a =
      pbt::train_trees(volumes, space, config, {}, nullptr, fixtures::context_of(2));
  const pbt::Model b = pbt::train_trees(volumes, space, config, {}, nullptr, gpu);
  fixtures::check_same_trees(a, b);
}

TEST_CASE("many samples of few features are split over the device") {
  const Context gpu = cuda_context();
  const auto volumes = fixtures::hard_volumes(6);
  voxels::TrainConfig config = fixtures::small_config();
  config.samples = sized<decltype(config.samples)>({4000, 4000}, {900, 900});
  config.tree.selected_positives = 20000;
  config.tree.selected_negatives = 20000;
  config.tree.depth = 2;
  check_training(volumes, config, gpu);
}

TEST_CASE("a model trained on a CUDA device equals the one from the CPU") {
  const Context gpu = cuda_context();
  const auto volumes = fixtures::hard_volumes(4);
  voxels::TrainConfig config = fixtures::small_config();
  config.mining.enabled = true;
  config.validation.fraction = 0.25;
  config.validation.patience = 3;
  config.tree.node_features = 120;
  check_training(volumes, config, gpu);
}

TEST_CASE("volumes in portions give the same model on a CUDA device", "[features::fill]") {
  const Context gpu = cuda_context();
  const auto volumes = fixtures::hard_volumes(sized(4, 3));
  voxels::TrainConfig config = fixtures::small_config();
  config.mining.enabled = true;
  config.validation.fraction = 0.25;
  config.features.count = sized(200, 40);
  config.samples = sized<decltype(config.samples)>({300, 500}, {40, 60});
  config.tree.depth = 2;
  const auto train = [&](const voxels::TrainConfig& c, const Context& context) {
    return pbt::train_trees(volumes, fixtures::space_of(c), c, {}, nullptr, context);
  };
  const pbt::Model whole = train(config, fixtures::context_of(2));
  config.memory_bytes = 1 << 16;
  size_t portions = 0;
  fixtures::check_same_trees(whole, fixtures::train_within(config, gpu, portions, train));
  CHECK(portions == volumes.size());
}

TEST_CASE("a training on a CUDA device goes on from any node, whatever is trained together") {
  const Context gpu = cuda_context();
  const auto volumes = fixtures::hard_volumes(3);
  voxels::TrainConfig config = fixtures::small_config();
  const auto space = fixtures::space_of(config);
  std::vector<pbt::PartialModel> checkpoints;
  pbt::TrainHooks hooks;
  hooks.after_step = [&](const pbt::PartialModel& partial) { checkpoints.push_back(partial); };
  const pbt::Model whole = pbt::train_trees(volumes, space, config, hooks, nullptr, gpu);
  REQUIRE(checkpoints.size() > 7);
  for (const pbt::PartialModel& partial : checkpoints) {
    if (test::small_tests() && partial.finished != 5) continue;
    pbt::TrainHooks resume;
    resume.resume = &partial;
    resume.samples_at_once = 1 + 150 * (partial.finished % 4);
    fixtures::check_same_trees(whole,
                               pbt::train_trees(volumes, space, config, resume, nullptr, gpu));
  }
}

}  // namespace
}  // namespace larch
