// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::pbt;
using fixtures::context_of;
using fixtures::grid_of;
using fixtures::noise_volume;

double sigma(double z) {
  return 1 / (1 + std::exp(-z));
}

/// A tree of one split whose posteriors are worked out by hand, on the eight samples of the test of
/// boosting: two in each of the bins 0 to 3, which are the feature's values themselves.
Model known_answer_tree(double band, bool copy) {
  const double alphas[] = {0.549306144334055, 0.804718956217050};
  const uint64_t masks[] = {0b0001, 0b1011};
  const std::vector<int> positives{2, 1, 0, 1}, negatives{0, 1, 2, 1};
  Model model;
  model.channels = {{image::ChannelKind::kIntensity, 0}};
  features::HaarFeature voxel;
  voxel.cuboid_count = 1;
  voxel.cuboids[0] = {{0, 0, 0}, {1, 1, 1}, 1};
  model.features = {voxel};
  model.logistic = tree::make_logistic_table();
  model.e2 = band;
  model.smoothing = 0;
  for (int t = 0; t < 2; ++t) {
    WeakClassifier weak;
    weak.codes = learning::make_code_map(0, 3);
    weak.mask = masks[t];
    weak.alpha_q20 = static_cast<int32_t>(std::llround(alphas[t] * 1048576));
    model.weaks.push_back(weak);
  }
  model.nodes.resize(3);
  model.nodes[0].left = 1;
  model.nodes[0].right = 2;
  model.nodes[0].n_weak = 2;
  for (uint64_t side = 0; side < 2; ++side) {
    model.nodes[1 + side].depth = 1;
    model.nodes[1 + side].heap_index = 2 + side;
    model.nodes[1 + side].first_weak = 2;
  }
  for (size_t bin = 0; bin < 4; ++bin) {
    int32_t h = 0;
    for (const WeakClassifier& weak : model.weaks) {
      h += weak.mask >> bin & 1 ? weak.alpha_q20 : -weak.alpha_q20;
    }
    const uint32_t p = tree::logistic_q30(model.logistic.data(), h);
    const auto give = [&](size_t node, uint64_t share_q30) {
      for (int i = 0; i < positives[bin]; ++i) {
        model.nodes[node].mass_positive +=
            tree::mass_times_q30(uint64_t{1} << 32, static_cast<uint32_t>(share_q30));
      }
      for (int i = 0; i < negatives[bin]; ++i) {
        model.nodes[node].mass_negative +=
            tree::mass_times_q30(uint64_t{1} << 32, static_cast<uint32_t>(share_q30));
      }
    };
    give(0, kOneQ30);
    const double above = p * 0x1.0p-30 - 0.5;
    if (above > band) {
      give(2, kOneQ30);
    } else if (-above > band) {
      give(1, kOneQ30);
    } else {
      give(2, copy ? kOneQ30 : p);
      give(1, copy ? kOneQ30 : kOneQ30 - p);
    }
  }
  return model;
}

std::vector<double> posteriors_by_bin(const Model& model) {
  check_model(model);
  const std::vector<uint32_t> q = node_probabilities(model);
  std::vector<double> posterior;
  for (int32_t bin = 0; bin < 4; ++bin) {
    const std::vector<int32_t> response{bin};
    posterior.push_back(static_cast<double>(posterior_q60(model, {}, q, response)) * 0x1.0p-60);
  }
  return posterior;
}

/// Algorithm 1 of Birkbeck, Sofka, Zhou 2011 in doubles, by recursion.
double recursion(const Model& model, const std::vector<double>& q, const Thresholds& t,
                 const std::vector<int32_t>& responses, int32_t n) {
  const Node& node = model.nodes[static_cast<size_t>(n)];
  if (node.is_leaf()) return q[static_cast<size_t>(n)];
  int32_t h = 0;
  for (uint32_t w = node.first_weak; w < node.first_weak + node.n_weak; ++w) {
    const WeakClassifier& weak = model.weaks[w];
    const bool vote = weak_vote(weak.codes, weak.bins, weak.mask, responses[weak.feature]);
    h += vote ? weak.alpha_q20 : -weak.alpha_q20;
  }
  const auto below = [&](int32_t child) { return recursion(model, q, t, responses, child); };
  if (h > t.t1) return below(node.right);
  if (h < -t.t1) return below(node.left);
  const double p = sigma(2 * h * 0x1.0p-20);
  const double left = h > t.t2 ? q[static_cast<size_t>(node.left)] : below(node.left);
  const double right = h < -t.t2 ? q[static_cast<size_t>(node.right)] : below(node.right);
  return (1 - p) * left + p * right;
}

/// Values of all features of a model at one voxel, box by box.
std::vector<int32_t> responses_at(const Model& model, const Volume<int16_t>& v, const Vec3i& at) {
  std::vector<int16_t> half;
  const Vec3i size = image::pyramid_size(v.size());
  for (int z = 0; z < size.z; ++z)
    for (int y = 0; y < size.y; ++y)
      for (int x = 0; x < size.x; ++x) half.push_back(image::pyramid_voxel(v.view(), x, y, z));
  const VolumeView<const int16_t> coarse{half.data(), size};
  std::vector<int32_t> responses;
  for (const features::HaarFeature& feature : model.features) {
    const image::ChannelSpec& channel = model.channels[feature.channel];
    int64_t sum = 0;
    for (size_t c = 0; c < static_cast<size_t>(feature.cuboid_count); ++c) {
      const features::Cuboid& box = feature.cuboids[c];
      for (int z = box.lo.z; z < box.hi.z; ++z)
        for (int y = box.lo.y; y < box.hi.y; ++y)
          for (int x = box.lo.x; x < box.hi.x; ++x)
            sum +=
                int64_t{box.weight} * fixtures::padded_channel_value(
                                          channel.level == 0 ? v.view() : coarse, channel.kind,
                                          model.padding, (at.x >> channel.level) + x,
                                          (at.y >> channel.level) + y, (at.z >> channel.level) + z);
    }
    responses.push_back(static_cast<int32_t>(sum));
  }
  return responses;
}

template <class T>
std::vector<T> voxels_of(const Volume<T>& v) {
  return {v.begin(), v.end()};
}

}  // namespace

TEST_CASE("the prior correction of leaf masses") {
  Model model = known_answer_tree(0.1, false);
  model.nodes[1].mass_positive = 9000;
  model.nodes[1].mass_negative = 1000;
  model.nodes[0].mass_positive = model.nodes[0].mass_negative = 500000;
  model.prior = PriorKind::kValue;
  model.prior_value = 2400.0 / 142400;
  CHECK(node_probabilities(model)[1] * 0x1.0p-30 == Approx(0.133663366).margin(2e-9));
  model.prior = PriorKind::kHalf;
  CHECK(node_probabilities(model)[1] * 0x1.0p-30 == Approx(0.9).margin(2e-9));
  model.nodes[0].mass_negative = 1500000;  // rho = 1/4: wanting 1/2 weighs the class three times
  CHECK(node_probabilities(model)[1] * 0x1.0p-30 == Approx(27.0 / 28).margin(2e-9));
  model.nodes[0].mass_positive = 1;
  model.nodes[0].mass_negative = UINT64_MAX;  // 1 - rho cancels in double
  for (const uint32_t p : node_probabilities(model)) CHECK(p <= kOneQ30);
}

TEST_CASE("Smoothing pulls towards the parent and fills empty nodes") {
  Model model = known_answer_tree(0.2, false);
  model.smoothing = 2;
  model.mean_mass = uint64_t{1} << 32;
  model.nodes[0].mass_positive = 3ULL << 32;
  model.nodes[0].mass_negative = 1ULL << 32;
  model.nodes[1].mass_positive = model.nodes[1].mass_negative = 0;
  model.nodes[2].mass_positive = 4ULL << 32;
  model.nodes[2].mass_negative = 0;
  const auto q = node_probabilities(model);
  const double root = (3 + 2 * 0.5) / 6;
  CHECK(q[0] * 0x1.0p-30 == Approx(root).margin(1e-9));
  CHECK(q[1] * 0x1.0p-30 == Approx(root).margin(1e-9));
  CHECK(q[2] * 0x1.0p-30 == Approx((4 + 2 * root) / 6).margin(1e-9));
  model.smoothing = 0;
  CHECK(node_probabilities(model)[1] == node_probabilities(model)[0]);
}

TEST_CASE("fixed point against the recursion in doubles on 3000 random trees") {
  fixtures::RandomTree spec;
  spec.features = 24;
  spec.self_tests = false;
  spec.pool = fixtures::random_pool(1, spec);
  double worst = 0;
  size_t visited = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    spec.depth = static_cast<int>(seed % 8);
    const Model model = fixtures::random_model(seed, spec);
    const std::vector<uint32_t> fixed = node_probabilities(model);
    std::vector<double> q;
    q.reserve(fixed.size());
    for (const uint32_t value : fixed) q.push_back(value * 0x1.0p-30);
    const Thresholds thresholds = tree::make_thresholds(model.e1, model.e2, false);
    for (uint64_t trial = 0; trial < 3; ++trial) {
      std::vector<int32_t> responses;
      for (uint64_t f = 0; f < model.features.size(); ++f) {
        responses.push_back(static_cast<int32_t>(hash_below(seed, 30 + trial, f, 20000)) - 10000);
      }
      const uint64_t total = posterior_q60(model, {}, fixed, responses);
      REQUIRE(total <= uint64_t{1} << 60);
      const double expected = recursion(model, q, thresholds, responses, 0);
      const double difference = std::abs(static_cast<double>(total) * 0x1.0p-60 - expected);
      worst = std::max(worst, difference / (model.depth() + 1));
      ++visited;
    }
  }
  CHECK(visited == 9000);
  CHECK(worst < 7.4e-7);
  CHECK(worst > 0);
}

TEST_CASE("the stack walk equals the reference at every voxel") {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Model model = fixtures::random_model(seed);
    if (seed % 2) model.padding = image::Padding::kZero;
    check_model(model);
    const Volume<int16_t> v = noise_volume({9, 7, 6}, seed + 50);
    const image::IntegralSet set =
        image::integral_set(v.view(), model.channels, model.padding, model.reach(), context_of());
    for (const bool hard : {false, true}) {
      EvaluateConfig config;
      config.walk = Walk::kStack;
      config.hard = hard;
      if (seed > 1) config.e2 = seed == 2 ? 0 : 0.45;
      const Volume<float> p = evaluate({model, {}}, set, v.grid(), config, context_of());
      EvaluationRule rule;
      rule.hard = hard;
      rule.e2 = config.e2.value_or(-1);
      const std::vector<uint32_t> q = node_probabilities(model);
      for (int64_t i = 0; i < v.voxels(); ++i) {
        const auto responses = responses_at(model, v, v.grid().voxel(i));
        REQUIRE(p[i] == tree::probability_float(posterior_q60(model, rule, q, responses)));
      }
    }
  }
}

TEST_CASE("every walk, type and thread count gives the same bytes") {
  size_t distinct = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    fixtures::RandomTree spec;
    spec.depth = 3 + static_cast<int>(seed % 4);
    spec.weaks = 20;
    const Model model = fixtures::random_model(seed, spec);
    const Volume<int16_t> v = noise_volume({37, 13, 10}, seed + 7);
    Volume<uint8_t> roi(v.grid());
    for (int64_t i = 0; i < roi.voxels(); ++i)
      roi[i] = hash64(seed, 9, static_cast<uint64_t>(i)) % 3 != 0;
    const image::IntegralSet set = image::integral_set(v.view(), model.channels, model.padding,
                                                       model.reach() + 1, context_of());
    for (const bool hard : {false, true}) {
      EvaluateConfig config;
      config.hard = hard;
      config.walk = Walk::kStack;
      config.e1 = seed < 3 ? 0 : 0.2;
      const auto reference = voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of()));
      distinct += static_cast<size_t>(std::adjacent_find(reference.begin(), reference.end(),
                                                         std::not_equal_to<>()) != reference.end());
      CHECK(voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of(3))) == reference);
      config.walk = Walk::kTile;
      CHECK(voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of(2))) == reference);
      const auto inside =
          voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of(), &roi));
      bool same = true;
      for (size_t i = 0; i < inside.size(); ++i) {
        same &= inside[i] == (roi[static_cast<int64_t>(i)] ? reference[i] : 0.0F);
      }
      CHECK(same);
    }
  }
  CHECK(distinct >= 10);  // of 12: the trees do answer differently at different voxels
}

TEST_CASE("a chain of depth 32") {
  Model model = known_answer_tree(0.2, false);
  model.nodes.resize(1);
  for (int depth = 1; depth <= kMaximumDepth; ++depth) {
    Node& parent = model.nodes[depth == 1 ? 0 : model.nodes.size() - 1];
    parent.n_weak = 2;
    parent.first_weak = 0;
    parent.left = static_cast<int32_t>(model.nodes.size());
    parent.right = parent.left + 1;
    Node left, right;
    left.depth = right.depth = depth;
    left.heap_index = 2 * parent.heap_index;
    right.heap_index = left.heap_index + 1;
    left.mass_positive = static_cast<uint64_t>(depth) << 32;
    left.mass_negative = 7ULL << 32;
    right.mass_positive = 5ULL << 32;
    right.mass_negative = 1ULL << 32;
    model.nodes.push_back(left);
    model.nodes.push_back(right);
  }
  check_model(model);
  CHECK(model.depth() == kMaximumDepth);
  Volume<int16_t> v(grid_of({4, 1, 1}));
  for (int i = 0; i < 4; ++i) v[i] = static_cast<int16_t>(i);
  const image::IntegralSet set =
      image::integral_set(v.view(), model.channels, model.padding, 0, context_of());
  EvaluateConfig config;
  config.walk = Walk::kStack;
  const auto stack = voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of()));
  config.walk = Walk::kTile;
  CHECK(voxels_of(evaluate({model, {}}, set, v.grid(), config, context_of())) == stack);
  const std::vector<double> expected = posteriors_by_bin(model);
  for (size_t i = 0; i < 4; ++i) CHECK(stack[i] == Approx(expected[i]).margin(1e-7));
  model.nodes.back().depth = 33;
  CHECK_THROWS_AS(check_model(model), InputError);
}

TEST_CASE("the walk that auto means") {
  const Device gpu = Device::cuda(0), cpu = Device::cpu();
  CHECK(chosen_walk(Walk::kAuto, 6, 1, gpu) == Walk::kTile);
  CHECK(chosen_walk(Walk::kAuto, 12, 1, gpu) == Walk::kQueue);
  CHECK(chosen_walk(Walk::kAuto, 6, 0.01, gpu) == Walk::kQueue);
  CHECK(chosen_walk(Walk::kAuto, 12, 0.01, cpu) == Walk::kTile);
  CHECK(chosen_walk(Walk::kStack, 12, 0.01, gpu) == Walk::kStack);
}
