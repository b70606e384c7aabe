// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/data/volume.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/train.h"
#include "larch/tree/check.h"
#include "larch/voxels/samples.h"
#include "tests/unit/box_mask.h"

namespace larch::fixtures {

using test::grid_of;

inline Context context_of(int threads = 1, uint64_t seed = 1) {
  Context context;
  context.threads = threads;
  context.seed = seed;
  return context;
}

/// Value of a channel at a position that may lie outside the volume.
inline int32_t padded_channel_value(const VolumeView<const int16_t>& v, image::ChannelKind kind,
                                    image::Padding padding, int x, int y, int z) {
  const int cx = image::clamp_index(x, v.size.x), cy = image::clamp_index(y, v.size.y),
            cz = image::clamp_index(z, v.size.z);
  const bool outside = cx != x || cy != y || cz != z;
  if (outside && !image::repeats_border(padding)) return 0;
  return image::channel_value(v, kind, cx, cy, cz);
}

inline Volume<int16_t> noise_volume(const Vec3i& size, uint64_t seed, int lo = 0, int hi = 1023) {
  Volume<int16_t> v(grid_of(size));
  for (int64_t i = 0; i < v.voxels(); ++i) {
    v[i] =
        static_cast<int16_t>(lo + static_cast<int>(hash_below(seed, 1, static_cast<uint64_t>(i),
                                                              static_cast<uint32_t>(hi - lo + 1))));
  }
  return v;
}

/// The settings of a random tree.
struct RandomTree {
  int depth = 4;
  int window = 7;
  int weaks = 5;
  double stop = 0.15;  ///< share of inner nodes that become leaves early
  std::vector<image::ChannelSpec> channels{{image::ChannelKind::kIntensity, 0},
                                           {image::ChannelKind::kIntensity, 1}};
  int features = 240;
  std::vector<features::HaarFeature> pool{};  ///< instead of a drawn one
  bool self_tests = true;
};

inline pbt::WeakClassifier random_weak(const pbt::Model& model, uint64_t seed, uint64_t counter) {
  const auto below = [&](uint64_t stream, uint32_t n) {
    return hash_below(seed, stream, counter, n);
  };
  pbt::WeakClassifier weak;
  weak.feature = below(10, static_cast<uint32_t>(model.features.size()));
  const auto spread = static_cast<int32_t>(50 + below(11, 20000));
  weak.codes = learning::make_code_map(-spread, spread - static_cast<int32_t>(below(12, 40)));
  const uint32_t first = below(13, 100);
  weak.bins = learning::make_bin_map(first, first + below(14, 155));
  weak.mask = hash64(seed, 15, counter);
  weak.alpha_q20 = static_cast<int32_t>(below(16, 1 << 19));
  return weak;
}

inline std::vector<features::HaarFeature> random_pool(uint64_t seed, const RandomTree& spec) {
  features::HaarPoolSpec pool;
  pool.features = spec.features;
  pool.window = spec.window;
  pool.sizes = {1, 2, 3};
  pool.channels = static_cast<int>(spec.channels.size());
  pool.seed = seed;
  return features::make_haar_pool(pool);
}

/// A tree with random structure, masses and weak classifiers that passes check_model.
inline pbt::Model random_model(uint64_t seed, const RandomTree& spec = {}) {
  pbt::Model model;
  model.channels = spec.channels;
  model.features = spec.pool.empty() ? random_pool(seed, spec) : spec.pool;
  model.logistic = tree::make_logistic_table();
  model.e1 = seed % 3 == 0 ? 1e-6 : 0.02;
  model.e2 = seed % 2 == 0 ? 0.1 : 0.3;
  model.mean_mass = uint64_t{1} << 32;
  model.nodes.emplace_back();
  uint64_t counter = 0;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    pbt::Node& node = model.nodes[n];
    node.mass_positive = hash64(seed, 1, n) >> 24;
    node.mass_negative = hash64(seed, 2, n) >> 24;
    const bool leaf = node.depth >= spec.depth || (n > 0 && hash_unit(seed, 3, n) < spec.stop);
    if (leaf) {
      node.reason = pbt::NodeReason::kMaximumDepth;
      continue;
    }
    node.first_weak = static_cast<uint32_t>(model.weaks.size());
    node.n_weak = 1 + hash_below(seed, 4, n, static_cast<uint32_t>(spec.weaks));
    for (uint32_t t = 0; t < node.n_weak; ++t) {
      model.weaks.push_back(random_weak(model, seed, ++counter));
    }
    pbt::Node left, right;
    left.depth = right.depth = node.depth + 1;
    left.heap_index = 2 * node.heap_index;
    right.heap_index = left.heap_index + 1;
    node.left = static_cast<int32_t>(model.nodes.size());
    node.right = node.left + 1;
    model.nodes.push_back(left);  // invalidates `node`
    model.nodes.push_back(right);
  }
  if (spec.self_tests) model.self_tests = tree::make_self_tests(model, model.features.size(), seed);
  return model;
}

/// An ensemble of random trees over one pool of features.
inline pbt::Model random_ensemble(uint64_t seed, int trees, RandomTree spec = {}) {
  spec.pool = random_pool(seed, spec);
  spec.self_tests = false;
  pbt::Model ensemble;
  for (int t = 0; t < trees; ++t) {
    pbt::append_tree(ensemble, random_model(seed + 100 * static_cast<uint64_t>(t), spec));
  }
  ensemble.self_tests = tree::make_self_tests(ensemble, ensemble.features.size(), seed);
  return ensemble;
}

/// A volume whose class is a ball: `inside` and `outside` are means, `noise` is half the range of
/// uniform noise.
struct Ball {
  Vec3i size{32, 32, 32};
  double radius = 8;
  int inside = 1000, outside = 0, noise = 50;
};
inline std::pair<Volume<float>, LabelVolume> ball_image(const Ball& ball, uint64_t seed) {
  const Grid grid = grid_of(ball.size);
  Volume<float> image(grid);
  LabelVolume labels(grid);
  for (int64_t i = 0; i < image.voxels(); ++i) {
    const Vec3d p =
        grid.voxel(i).cast<double>() -
        Vec3d{(ball.size.x - 1) / 2.0, (ball.size.y - 1) / 2.0, (ball.size.z - 1) / 2.0};
    labels[i] = norm(p) <= ball.radius ? 1 : 0;
    const double noise = (2 * hash_unit(seed, 7, static_cast<uint64_t>(i)) - 1) * ball.noise;
    image[i] = static_cast<float>((labels[i] ? ball.inside : ball.outside) + noise);
  }
  return {image, labels};
}
inline voxels::TrainingVolume ball_volume(const Ball& ball, uint64_t seed) {
  const auto [image, labels] = ball_image(ball, seed);
  image::ModelSpace space;
  space.intensity.rule = image::IntensityKind::kWindow;
  space.intensity.window_low = 0;
  space.intensity.window_high = 1023;
  voxels::LabelConfig config;
  config.border_voxels = 0;
  return voxels::make_training_volume("ball", std::span(&image, 1), labels, space, config,
                                      context_of());
}

/// A configuration that trains in a moment.
inline voxels::TrainConfig small_config() {
  voxels::TrainConfig config;
  config.features.pyramid_levels = 1;
  config.features.count = 200;
  config.features.window = 5;
  config.features.sizes = {1, 2};
  config.samples.positives_per_volume = 300;
  config.samples.negatives_per_volume = 500;
  config.tree.depth = 3;
  config.tree.rounds = {5};
  config.tree.min_samples = 10;
  config.tree.min_class_samples = 3;
  config.space.intensity.rule = image::IntensityKind::kWindow;
  config.space.intensity.window_low = 0;
  config.space.intensity.window_high = 1023;
  return config;
}
inline image::ModelSpace space_of(const voxels::TrainConfig& config) {
  return {{1, 1, 1}, config.space.orientation, config.space.intensity};
}

/// Volumes that no single threshold separates, so that trees grow.
inline std::vector<voxels::TrainingVolume> hard_volumes(int count) {
  std::vector<voxels::TrainingVolume> volumes;
  volumes.reserve(static_cast<size_t>(count));
  for (int v = 0; v < count; ++v) {
    volumes.push_back(ball_volume({{14 + v, 13, 12}, 4.5, 560, 440, 400}, 100 + v));
  }
  voxels::sort_by_digest(volumes);
  return volumes;
}

/// Calls `train` with the least memory that suffices, from `config.memory_bytes` on in steps of a
/// sixteenth, and counts the portions that it tells of.
template <class Train>
auto train_within(voxels::TrainConfig& config, Context context, size_t& portions,
                  const Train& train) {
  portions = 1;
  context.log_sink = [&](LogLevel, std::string_view text) {
    if (text.find(" portions") != text.npos) portions = std::stoul(&text[text.find("in ") + 3]);
  };
  for (;; config.memory_bytes += config.memory_bytes / 16) {
    try {
      return train(config, context);
    } catch (const MemoryError&) {
      if (config.memory_bytes > int64_t{1} << 30) throw;
    }
  }
}

}  // namespace larch::fixtures
