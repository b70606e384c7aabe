// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/forest/train.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/train/train.h"
#include "larch/tree/train/score.h"
#include "larch/voxels/samples.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::pbt;
using fixtures::context_of;
using fixtures::grid_of;

Model train_on(const std::vector<TrainingVolume>& volumes, const TrainConfig& config,
               TrainReport* report = nullptr, int threads = 1, uint64_t seed = 1) {
  return train_trees(volumes, fixtures::space_of(config), config, {}, report,
                     context_of(threads, seed));
}

Volume<float> posterior_of(const Model& model, const TrainingVolume& volume) {
  const image::IntegralSet set =
      image::integral_set(volume.voxels.view(), model.channels, model.padding,
                          std::max(1, model.reach()), context_of());
  return evaluate({model, {}}, set, volume.voxels.grid(), {}, context_of());
}

/// A volume from a list of intensities and labels along x; label 9 is ignored.
TrainingVolume row_volume(const std::vector<float>& values, const std::vector<int32_t>& labels) {
  const Grid grid = grid_of({static_cast<int32_t>(values.size()), 1, 1});
  Volume<float> image(grid);
  LabelVolume label(grid);
  std::copy(values.begin(), values.end(), image.begin());
  std::copy(labels.begin(), labels.end(), label.begin());
  LabelConfig config;
  config.positive = {1};
  config.ignore = {9};
  config.border_voxels = 0;
  return make_training_volume("row", std::span(&image, 1), label,
                              fixtures::space_of(fixtures::small_config()), config, context_of());
}

/// Pairs of voxels, a sample in the first of each: the sign of the first feature decides over the
/// coarse part, that of the second over the fine part of what linear features can see.
TrainingVolume quadrants(int count, uint64_t seed) {
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    const double u = hash_unit(seed, 1, i);
    const int quadrant = u < 0.4 ? 0 : u < 0.5 ? 1 : u < 0.75 ? 2 : 3;  // ++ +- -+ --
    const bool first = quadrant < 2, second = quadrant % 2 == 0;
    values.push_back(static_cast<float>((first ? 600 : 0) + hash_below(seed, 2, i, 400)));
    values.push_back(static_cast<float>((second ? 20 : 0) + hash_below(seed, 3, i, 11)));
    labels.push_back(quadrant == 0 || quadrant == 3 ? 1 : 0);
    labels.push_back(9);
    for (int pad = 0; pad < 2; ++pad) {
      values.push_back(500);
      labels.push_back(9);
    }
  }
  return row_volume(values, labels);
}

TrainConfig quadrant_config(int depth) {
  TrainConfig config = fixtures::small_config();
  config.features.count = 600;
  config.features.window = 3;
  config.features.sizes = {1};
  config.samples.positives_per_volume = config.samples.negatives_per_volume = 100000;
  config.tree.depth = depth;
  return config;
}

double error_of(const Model& model, const TrainingVolume& volume) {
  const Volume<float> p = posterior_of(model, volume);
  double wrong = 0, all = 0;
  for (int64_t i = 0; i < p.voxels(); ++i) {
    const auto truth = static_cast<VoxelClass>(volume.classes[i]);
    if (truth == VoxelClass::kIgnored) continue;
    ++all;
    wrong += (p[i] > 0.5F) != (truth == VoxelClass::kPositive);
  }
  return wrong / all;
}

/// Inner nodes whose children do not have its masses exactly.
size_t lossy_nodes(const Model& model) {
  size_t lossy = 0;
  for (const Node& node : model.nodes) {
    if (node.is_leaf()) continue;
    const Node& left = model.nodes[static_cast<size_t>(node.left)];
    const Node& right = model.nodes[static_cast<size_t>(node.right)];
    lossy += left.mass_positive + right.mass_positive != node.mass_positive ||
             left.mass_negative + right.mass_negative != node.mass_negative;
  }
  return lossy;
}

size_t inner_nodes(const Model& model) {
  return static_cast<size_t>(std::count_if(model.nodes.begin(), model.nodes.end(),
                                           [](const Node& node) { return !node.is_leaf(); }));
}

}  // namespace

TEST_CASE("a noisy ball is learned without error") {
  std::vector<TrainingVolume> volumes{fixtures::ball_volume({}, 1)};
  TrainConfig config = fixtures::small_config();
  config.features.window = 3;
  config.features.sizes = {1};
  config.features.count = 400;  // all boxes, so that the voxel itself is among them
  config.samples.positives_per_volume = config.samples.negatives_per_volume = 100000;
  config.tree.depth = 2;
  config.tree.rounds = {10};
  const Model model = train_on(volumes, config);
  CHECK(error_of(model, volumes[0]) == 0);
  CHECK(error_of(model, fixtures::ball_volume({{24, 26, 28}, 6}, 2)) == 0);
}

TEST_CASE("quadrants need a second level") {
  const std::vector<TrainingVolume> volumes{quadrants(3000, 1)};
  const TrainingVolume test = quadrants(3000, 2);
  // Two rounds of 64 bins are enough: later ones find no structure that a sum can use and learn the
  // noise of the sample. Thresholds bear ten.
  for (const learning::WeakKind weak :
       {learning::WeakKind::kHist64, learning::WeakKind::kThreshold}) {
    const auto error_at = [&](int depth) {
      TrainConfig config = quadrant_config(depth);
      config.tree.weak = weak;
      config.tree.rounds = {weak == learning::WeakKind::kHist64 ? 2 : 10};
      return error_of(train_on(volumes, config), test);
    };
    CHECK(error_at(1) >= 0.09);
    CHECK(error_at(2) <= 0.05);
  }
}

TEST_CASE("Soft routing keeps the masses exactly, copying does not lose any") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(2);
  TrainConfig config = fixtures::small_config();
  config.tree.depth = 4;
  config.tree.routing_band = 0.3;
  const Model soft = train_on(volumes, config);
  CHECK(inner_nodes(soft) >= 5);
  CHECK(lossy_nodes(soft) == 0);
  uint64_t positive = 0, negative = 0;
  for (const TrainingVolume& volume : volumes) {
    for (const uint8_t c : volume.classes) (c == 1 ? positive : negative) += uint64_t{1} << 32;
  }
  // Every voxel counts once, up to the rounding of mass per sample.
  CHECK(static_cast<double>(soft.nodes[0].mass_positive) == Approx(static_cast<double>(positive)));
  CHECK(static_cast<double>(soft.nodes[0].mass_negative) == Approx(static_cast<double>(negative)));
  config.tree.routing = Routing::kCopy;
  const Model copy = train_on(volumes, config);
  const Node& root = copy.nodes[0];
  REQUIRE_FALSE(root.is_leaf());
  CHECK(copy.nodes[1].mass_positive + copy.nodes[2].mass_positive > root.mass_positive);
}

TEST_CASE("Mined negatives replace others and share their mass") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(2);
  TrainConfig config = fixtures::small_config();
  config.samples.negatives_per_volume = 100;
  config.tree.depth = 3;
  const Model plain = train_on(volumes, config);
  config.mining.enabled = true;
  config.mining.per_node = 150;
  const Model mined = train_on(volumes, config);
  CHECK(lossy_nodes(mined) == 0);
  CHECK(mined.nodes[0].mass_negative == plain.nodes[0].mass_negative);
  bool differs = mined.weaks.size() != plain.weaks.size();
  for (size_t w = 0; !differs && w < mined.weaks.size(); ++w) {
    differs = mined.weaks[w].mask != plain.weaks[w].mask;
  }
  CHECK(differs);
  size_t most = 0;
  for (const NodeHistory& entry : mined.history) {
    if (entry.node > 0) most = std::max<size_t>(most, entry.selected_negative);
  }
  CHECK(most > 0);
  CHECK(most <= 200);
}

TEST_CASE("Pruning does not raise the held-out log-loss") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(4);
  TrainConfig config = fixtures::small_config();
  config.samples.positives_per_volume = 60;
  config.samples.negatives_per_volume = 120;
  config.tree.depth = 5;
  config.tree.rounds = {12};
  config.validation.fraction = 0.5;
  config.validation.prune = false;
  TrainReport full;
  const Model grown = train_on(volumes, config, &full);
  config.validation.prune = true;
  const Model cut = train_on(volumes, config);
  CHECK(full.figures[0].second == 2);  // training_volumes
  CHECK(full.figures[1].second == 2);  // held_out_volumes
  const auto pruned_nodes = std::ranges::count(cut.nodes, NodeReason::kPruned, &Node::reason);
  REQUIRE(pruned_nodes > 0);
  CHECK(*cut.info.measured("log_loss") <=
        *grown.info.measured("log_loss") + 1e-6 * double(pruned_nodes) + 1e-9);
  CHECK(cut.nodes.size() < grown.nodes.size());
  CHECK(lossy_nodes(cut) == 0);
  check_model(cut);
  for (const NodeHistory& entry : cut.history) {
    CHECK(entry.node < static_cast<int32_t>(cut.nodes.size()));
  }
  std::set<uint32_t> used;
  for (const WeakClassifier& weak : cut.weaks) used.insert(weak.feature);
  CHECK(used.size() == cut.features.size());
}

TEST_CASE("The reported held-out score is that of the final model on the held-out volume") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(2);
  TrainConfig config = fixtures::small_config();
  config.samples.positives_per_volume = config.samples.negatives_per_volume = 100000;
  config.validation.fraction = 0.5;
  const Model model = train_on(volumes, config);
  double nearest = 1;
  for (size_t v = 0; v < 2; ++v) {
    const std::vector<size_t> which{v};
    const SampleSet samples = draw_samples(volumes, which, config.samples, 1);
    const Volume<float> p = posterior_of(model, volumes[v]);
    std::vector<double> posterior;
    for (size_t i = 0; i < samples.size(); ++i) posterior.push_back(p[samples.voxel(i)]);
    const tree::HeldOutScore s = tree::score(posterior, samples);
    nearest = std::min(nearest, std::abs(s.log_loss - *model.info.measured("log_loss")) +
                                    std::abs(s.auc - *model.info.measured("auc")));
  }
  CHECK(nearest < 1e-5);
  const std::vector<DepthScore> depths = depth_scores(model.info);
  REQUIRE(depths.size() == static_cast<size_t>(model.depth()) + 1);
  CHECK(depths.back().log_loss == *model.info.measured("log_loss"));
  CHECK(depths.back().auc == *model.info.measured("auc"));
  CHECK(depths.front().log_loss > depths.back().log_loss);
}

TEST_CASE("The stored threshold is the best of a hundredth on whole held-out volumes") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(3);
  TrainConfig config = fixtures::small_config();
  config.validation.fraction = 0.34;
  config.tree.prior = tree::PriorKind::kHalf;
  const Model model = train_on(volumes, config, nullptr);
  REQUIRE(model.info.measured("volumes") == 1.0);
  const double threshold = model.info.measured("threshold").value();
  const double dice = model.info.measured("dice").value();
  // Of one of the volumes, by hand: which one is held out is a matter of hashes.
  int fits = 0;
  for (const TrainingVolume& volume : volumes) {
    const Volume<float> p = posterior_of(model, volume);
    const Volume<uint8_t>& truth = volume.truth.empty() ? volume.classes : volume.truth;
    double best = 0, at_stored = 0;
    for (int k = 1; k < 100; ++k) {
      int64_t both = 0, found = 0, all = 0;
      for (int64_t i = 0; i < p.voxels(); ++i) {
        if (truth[i] == 2) continue;
        const bool is_found = p[i] > static_cast<float>(k / 100.0);
        all += truth[i];
        found += is_found;
        both += is_found && truth[i] == 1;
      }
      const double d = 2 * static_cast<double>(both) / static_cast<double>(found + all);
      best = std::max(best, d);
      if (k / 100.0 == threshold) at_stored = d;
    }
    fits += best == dice && at_stored == dice;
  }
  CHECK(fits == 1);
  Model other = model;
  for (auto& [name, value] : other.info.validation) {
    if (name == "threshold") value = 1.5;
  }
  CHECK_THROWS_WITH(check_model(other), Catch::Contains("threshold"));
}

TEST_CASE("A checkpoint of a single tree is written by time as well") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(2);
  const TrainConfig config = fixtures::small_config();
  const auto checkpoints = [&](double seconds) {
    size_t count = 0;
    TrainHooks hooks;
    hooks.seconds = seconds;
    hooks.after_step = [&](const PartialModel&) { ++count; };
    const Model model =
        train_trees(volumes, fixtures::space_of(config), config, hooks, nullptr, context_of());
    REQUIRE(model.nodes.size() > 3);
    return count;
  };
  CHECK(checkpoints(0) > 3);
  CHECK(checkpoints(1e6) == 1);
}

TEST_CASE("one class only") {
  std::vector<TrainingVolume> volumes{row_volume({1, 2, 3, 4}, {0, 0, 0, 9})};
  TrainConfig config = fixtures::small_config();
  CHECK_THROWS_WITH(train_on(volumes, config),
                    Catch::Contains("0 samples of the class and 3 of the background"));
  config.tree.allow_constant = true;
  const Model model = train_on(volumes, config);
  REQUIRE(model.nodes.size() == 1);
  CHECK(model.nodes[0].reason == NodeReason::kPure);
  CHECK(model.depth() == 0);
  const Volume<float> p = posterior_of(model, volumes[0]);
  CHECK(p[0] == Approx(0.125));  // (0 + 1 * 0.5) / (3 + 1)
}

TEST_CASE("everything ignored, no volume") {
  std::vector<TrainingVolume> volumes{row_volume({1, 2}, {9, 9})};
  TrainConfig config = fixtures::small_config();
  config.tree.allow_constant = true;
  CHECK_THROWS_AS(train_on(volumes, config), InputError);
  CHECK_THROWS_AS(train_on({}, config), InputError);
}

TEST_CASE("contradictory duplicates and constant images make a leaf with the mixed q") {
  TrainConfig config = fixtures::small_config();
  config.tree.min_samples = 2;
  config.tree.min_class_samples = 1;
  config.tree.smoothing = 0;
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (int i = 0; i < 60; ++i) {
    values.push_back(500);
    labels.push_back(i % 3 == 0);
  }
  const std::vector<TrainingVolume> volumes{row_volume(values, labels)};
  const Model model = train_on(volumes, config);
  REQUIRE(model.nodes.size() == 1);
  CHECK(model.nodes[0].reason == NodeReason::kNoWeakClassifier);
  CHECK(posterior_of(model, volumes[0])[5] == Approx(1.0 / 3).margin(1e-6));
}

TEST_CASE("volumes of one voxel, smaller than the window") {
  std::vector<TrainingVolume> volumes;
  const float bins[] = {0, 0, 100, 100, 200, 200, 300, 300};
  const int32_t classes[] = {1, 1, 1, 0, 0, 0, 1, 0};
  for (size_t i = 0; i < 8; ++i) volumes.push_back(row_volume({bins[i]}, {classes[i]}));
  sort_by_digest(volumes);
  TrainConfig config = fixtures::small_config();
  config.features.window = 17;
  config.features.sizes = {1, 12};
  config.features.count = 400;
  config.tree.depth = 1;
  config.tree.rounds = {2};
  config.tree.min_samples = 2;
  config.tree.min_class_samples = 1;
  config.tree.smoothing = 0;
  const Model model = train_on(volumes, config);
  REQUIRE(model.nodes.size() == 3);
  // With empty bins voting as the nearest: round 1 votes ++-- with error 1/4, round 2 votes +--+
  // with error 1/6; bins 0 and 3 go right, bins 1 and 2 left.
  REQUIRE(model.history.at(0).errors.size() == 2);
  CHECK(model.history[0].errors[0] == Approx(0.25).margin(1e-8));
  CHECK(model.history[0].errors[1] == Approx(1.0 / 6).margin(1e-8));
  CHECK(model.weaks.at(0).alpha_q20 * 0x1.0p-20 == Approx(0.549306144334).margin(1e-6));
  CHECK(model.weaks.at(1).alpha_q20 * 0x1.0p-20 == Approx(0.804718956217).margin(1e-6));
  CHECK(model.nodes[0].mass_positive == uint64_t{4} << 32);
  CHECK(model.nodes[1].mass_positive == uint64_t{1} << 32);
  CHECK(model.nodes[2].mass_positive == uint64_t{3} << 32);
  CHECK(lossy_nodes(model) == 0);
  const double expected[] = {23.0 / 32, 7.0 / 16, 9.0 / 32, 9.0 / 16};
  for (const TrainingVolume& volume : volumes) {
    const int bin = (volume.voxels[0] + 50) / 100;
    CHECK(posterior_of(model, volume)[0] == Approx(expected[bin]).margin(2e-6));
  }
}

TEST_CASE("an empty child is a leaf with its parent's probability") {
  std::vector<float> values;
  std::vector<int32_t> labels;
  for (int i = 0; i < 200; ++i) {  // nine of ten are positive, for either value
    values.insert(values.end(), {i % 2 ? 0.0F : 1000.0F, 500, 500, 500, 500});
    labels.insert(labels.end(), {i % 20 < 18, 9, 9, 9, 9});
  }
  TrainConfig config = fixtures::small_config();
  config.features.window = 3;
  config.features.sizes = {1};
  config.tree.balance = Balance::kMass;
  config.tree.depth = 4;
  const std::vector<TrainingVolume> volumes{row_volume(values, labels)};
  const Model model = train_on(volumes, config);
  REQUIRE(model.nodes.size() == 3);
  CHECK(model.nodes[0].n_weak > 0);
  CHECK(model.nodes[1].reason == NodeReason::kEmpty);
  CHECK(model.nodes[1].mass_positive + model.nodes[1].mass_negative == 0);
  CHECK(model.nodes[2].reason == NodeReason::kNothingSeparated);
  const auto q = node_probabilities(model);
  CHECK(q[1] == q[0]);
  CHECK(posterior_of(model, volumes[0])[0] == Approx(0.9).margin(0.01));
}

TEST_CASE("depth 0 is a constant, depth 32 ends where samples do") {
  const std::vector<TrainingVolume> volumes = fixtures::hard_volumes(1);
  TrainConfig config = fixtures::small_config();
  config.tree.depth = 0;
  const Model constant = train_on(volumes, config);
  REQUIRE(constant.nodes.size() == 1);
  CHECK(constant.nodes[0].reason == NodeReason::kMaximumDepth);
  CHECK(constant.features.empty());
  const Volume<float> p = posterior_of(constant, volumes[0]);
  CHECK(std::all_of(p.begin(), p.end(), [&](float value) { return value == p[0]; }));
  config.tree.depth = 32;
  config.tree.rounds = {1};
  config.tree.routing_band =
      0;  // otherwise weak splits send most samples both ways, at every level
  config.tree.weak = learning::WeakKind::kThreshold;
  config.tree.min_samples = 2;
  config.tree.min_class_samples = 1;
  config.features.count = 40;
  const Model deep = train_on(volumes, config);
  CHECK(deep.depth() > 3);
  CHECK(deep.depth() <= 32);
  CHECK(lossy_nodes(deep) == 0);
}

TEST_CASE("Nothing is learned from the corners of the box around an oblique image") {
  Grid grid = grid_of({24, 24, 6});
  const double half = std::sqrt(0.5);
  grid.direction = {{{half, -half, 0}, {half, half, 0}, {0, 0, 1}}};
  Volume<float> image(grid);
  for (int64_t i = 0; i < image.voxels(); ++i) image[i] = static_cast<float>(i % 17);
  const LabelVolume labels(grid, 1);
  LabelConfig config;
  config.border_voxels = 0;
  const TrainingVolume made =
      make_training_volume("box", std::span(&image, 1), labels, {}, config, context_of());
  const auto count = [&](VoxelClass kind) {
    return std::count(made.classes.begin(), made.classes.end(), static_cast<uint8_t>(kind));
  };
  CHECK(count(VoxelClass::kNegative) == 0);
  const auto positive = static_cast<double>(count(VoxelClass::kPositive));
  CHECK(positive == Approx(static_cast<double>(image.voxels())).epsilon(0.05));
  CHECK(count(VoxelClass::kIgnored) > image.voxels() / 2);
  const std::vector<Volume<float>> images{image};
  const LabelVolume of_forest =
      forest::make_training_volume("box", images, labels, {}, config, context_of()).labels;
  CHECK(std::set<int32_t>(of_forest.begin(), of_forest.end()) == std::set<int32_t>{kUnlabelled, 1});
}
