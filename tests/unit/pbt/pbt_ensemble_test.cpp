// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/train.h"
#include "larch/tree/train/samples.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

voxels::TrainConfig ensemble_config(int trees) {
  voxels::TrainConfig config = fixtures::small_config();
  config.classifier = voxels::ClassifierKind::kEnsemble;
  config.ensemble.trees = trees;
  config.ensemble.feature_share = 0.3;
  return config;
}

pbt::Model train_on(const std::vector<voxels::TrainingVolume>& volumes,
                    const voxels::TrainConfig& config, voxels::TrainReport* report = nullptr) {
  return pbt::train_trees(volumes, fixtures::space_of(config), config, {}, report,
                          fixtures::context_of(2));
}

TEST_CASE("The mean of trees in integers: a thousand certain trees do not overflow") {
  const uint64_t certain = uint64_t{1} << 60;
  uint64_t sum = 0;
  for (int t = 0; t < 1000; ++t) sum += tree::ensemble_term(certain);
  CHECK(tree::ensemble_mean_q60(sum, 1000) == certain);
  CHECK(tree::ensemble_mean_q60(tree::ensemble_term(certain), 2) == certain / 2);
  // 1/3 of one, rounded down to a multiple of 2^-40.
  CHECK(tree::ensemble_mean_q60(tree::ensemble_term(certain), 3) == ((uint64_t{1} << 40) / 3)
                                                                        << 20);
}

TEST_CASE("An ensemble's posterior is the mean of its trees', for every walk and type") {
  const Volume<int16_t> v = fixtures::noise_volume({19, 13, 11}, 3);
  Volume<uint8_t> roi(v.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = i % 3 != 0;
  const pbt::Model ensemble = fixtures::random_ensemble(4, 5);
  const Context context = fixtures::context_of(2);
  const auto set =
      image::integral_set(v.view(), ensemble.channels, ensemble.padding, ensemble.reach(), context);
  std::vector<double> mean(static_cast<size_t>(v.voxels()), 0);
  for (size_t t = 0; t < ensemble.trees(); ++t) {
    const pbt::Model tree = pbt::extract_tree(ensemble, t);
    REQUIRE(tree.trees() == 1);
    const Volume<float> p = pbt::evaluate({tree, {}}, set, v.grid(), {}, context);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += p[static_cast<int64_t>(i)] / 5.0;
  }
  const Volume<float> whole = pbt::evaluate({ensemble, {}}, set, v.grid(), {}, context);
  for (size_t i = 0; i < mean.size(); ++i) {
    REQUIRE(std::abs(whole[static_cast<int64_t>(i)] - mean[i]) < 1e-6);
  }
  pbt::EvaluateConfig stack;
  stack.walk = pbt::Walk::kStack;
  pbt::EvaluateConfig tile;
  for (const pbt::EvaluateConfig& config : {stack, tile}) {
    const Volume<float> same = pbt::evaluate({ensemble, {}}, set, v.grid(), config, context);
    CHECK(std::memcmp(same.data(), whole.data(), mean.size() * sizeof(float)) == 0);
  }
  const Volume<float> a = pbt::evaluate({ensemble, {}}, set, v.grid(), stack, context, &roi);
  const Volume<float> b = pbt::evaluate({ensemble, {}}, set, v.grid(), tile, context, &roi);
  CHECK(std::equal(a.begin(), a.end(), b.begin()));
  for (int64_t i = 0; i < roi.voxels(); ++i) REQUIRE((roi[i] != 0 || a[i] == 0));
}

TEST_CASE("An ensemble in slabs is the ensemble in one piece") {
  const pbt::Model ensemble = fixtures::random_ensemble(6, 3);
  const Volume<int16_t> v = fixtures::noise_volume({17, 12, 90}, 5);
  const Context context = fixtures::context_of(2);
  const auto whole =
      pbt::evaluate_volume({ensemble, {}}, {&v, 1}, {}, int64_t{1} << 40, context, nullptr);
  voxels::SlabProblem problem{v.size(), 4, false, true, int64_t{1} << 40};
  const voxels::SlabPlan of_all = pbt::plan_slabs(ensemble, problem);
  pbt::Model one = ensemble;  // as large, but without sums of trees
  one.roots = {0};
  const int64_t more = of_all.bytes - pbt::plan_slabs(one, problem).bytes;
  CHECK(more == 8 * v.voxels() + 2 * (int64_t{64} << 10));  // and two tables more
  problem.on_gpu = false;
  problem.memory_bytes = pbt::plan_slabs(ensemble, problem).bytes - 1;
  REQUIRE(pbt::plan_slabs(ensemble, problem).count > 1);
  const auto slabs =
      pbt::evaluate_volume({ensemble, {}}, {&v, 1}, {}, problem.memory_bytes, context, nullptr);
  CHECK(std::equal(whole.begin(), whole.end(), slabs.begin()));
}

TEST_CASE("Ensembles with roots out of place are refused") {
  const pbt::Model ensemble = fixtures::random_ensemble(2, 3);
  const auto refused = [&](const std::vector<uint32_t>& roots) {
    pbt::Model damaged = ensemble;
    damaged.roots = roots;
    CHECK_THROWS_AS(pbt::check_model(damaged), InputError);
  };
  refused({});
  refused({0});  // the other trees are then below nobody
  refused({0, ensemble.roots[2], ensemble.roots[1]});
  refused({0, ensemble.roots[1], ensemble.roots[1]});
  refused({0, ensemble.roots[1] + 1, ensemble.roots[2]});
  refused({0, ensemble.roots[1], static_cast<uint32_t>(ensemble.nodes.size())});
  pbt::Model crossing = ensemble;
  crossing.nodes[0].left = static_cast<int32_t>(ensemble.roots[1]) + 1;  // right depth, right id
  CHECK_THROWS_WITH(pbt::check_model(crossing), Catch::Contains("child out of range"));
  pbt::Model many;
  pbt::Model leaf = pbt::extract_tree(ensemble, 0);
  leaf.nodes.resize(1);
  leaf.nodes[0].left = leaf.nodes[0].right = -1;
  leaf.nodes[0].n_weak = 0;
  for (int t = 0; t < pbt::kMaximumTrees; ++t) pbt::append_tree(many, leaf);
  CHECK_NOTHROW(pbt::check_model(many));
  pbt::append_tree(many, leaf);
  CHECK_THROWS_WITH(pbt::check_model(many), Catch::Contains("more than 1024 trees"));
}

TEST_CASE("Bootstrap draws as many volumes as there are, with replacement") {
  std::set<std::vector<uint32_t>> different;
  double absent = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto times = tree::bootstrap_counts(40, seed);
    CHECK(std::accumulate(times.begin(), times.end(), 0u) == 40);
    absent += static_cast<double>(std::count(times.begin(), times.end(), 0u)) / (40 * 50);
    different.insert(times);
  }
  CHECK(different.size() == 50);
  CHECK(std::abs(absent - std::exp(-1.0)) < 0.03);  // (1 - 1/n)^n
}

TEST_CASE("Trees of an ensemble use their share of the features, and differ") {
  const auto volumes = fixtures::hard_volumes(4);
  const voxels::TrainConfig config = ensemble_config(3);
  voxels::TrainReport report;
  const pbt::Model ensemble = train_on(volumes, config, &report);
  REQUIRE(ensemble.trees() == 3);
  std::set<uint64_t> masses;
  for (size_t t = 0; t < 3; ++t) {
    const auto seed = tree::tree_seed(fixtures::context_of().seed, t);
    const auto pool = static_cast<size_t>(report.figures[4].second);
    const auto share = static_cast<size_t>(std::ceil(0.3 * static_cast<double>(pool)));
    const auto allowed = tree::draw_columns({}, pool, share, seed, 0);
    REQUIRE(allowed.size() == share);
    const pbt::Model tree = pbt::extract_tree(ensemble, t);
    REQUIRE_FALSE(tree.features.empty());
    for (const auto& feature : tree.features) {
      CHECK(std::binary_search(allowed.begin(), allowed.end(), feature.pool_index));
    }
    masses.insert(tree.nodes[0].mass_positive);
  }
  CHECK(masses.size() > 1);  // other volumes, of other sizes
}

TEST_CASE("What a tree mined is not seen by the next, and fewer trees are the first of more") {
  const auto volumes = fixtures::hard_volumes(3);
  voxels::TrainConfig config = ensemble_config(3);
  config.ensemble.bootstrap = false;
  const pbt::Model plain = train_on(volumes, config);
  config.mining.enabled = true;
  config.mining.per_node = 50;
  const pbt::Model three = train_on(volumes, config);
  bool mined = plain.weaks.size() != three.weaks.size();
  for (size_t w = 0; !mined && w < three.weaks.size(); ++w) {
    mined = plain.weaks[w].mask != three.weaks[w].mask;
  }
  REQUIRE(mined);
  // Every root has the samples that were drawn, and no more.
  std::set<uint32_t> at_roots;
  for (const pbt::NodeHistory& entry : three.history) {
    const auto node = static_cast<uint32_t>(entry.node);
    if (std::binary_search(three.roots.begin(), three.roots.end(), node)) {
      at_roots.insert(entry.samples);
    }
  }
  CHECK(at_roots.size() == 1);
  config.ensemble.trees = 2;
  const pbt::Model two = train_on(volumes, config);
  REQUIRE(three.roots[2] == two.nodes.size());
  for (size_t n = 0; n < two.nodes.size(); ++n) {
    CHECK(two.nodes[n].mass_positive == three.nodes[n].mass_positive);
    CHECK(two.nodes[n].mass_negative == three.nodes[n].mass_negative);
  }
}

TEST_CASE("A tree draws again until both classes occur") {
  auto volumes = fixtures::hard_volumes(4);
  for (size_t v = 1; v < volumes.size(); ++v) {  // the class is in one volume of four
    std::fill(volumes[v].classes.begin(), volumes[v].classes.end(), uint8_t{0});
  }
  voxels::TrainConfig config = ensemble_config(12);  // a third of first draws would miss it
  config.tree.depth = 1;
  const pbt::Model ensemble = train_on(volumes, config);
  for (const uint32_t root : ensemble.roots) {
    CHECK(ensemble.nodes[root].mass_positive > 0);
    CHECK(ensemble.nodes[root].mass_negative > 0);
  }
}

}  // namespace
}  // namespace larch
