// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/perf/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "larch/core/random_math.h"
#include "larch/pbt/evaluate/compiled_model.h"
#include "larch/pbt/train/train.h"

namespace larch::perf {
namespace {

constexpr uint64_t kSeed = 20110701;
enum Stream : uint64_t { kCentre = 1, kNoise = 2, kSwap = 3 };

int machine_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Distance to the nearest of eight centres, as a share of the radius.
double blob_distance(const Vec3i& size, int number, const Vec3i& at) {
  const double radius = 0.22 * std::min({size.x, size.y, size.z});
  double nearest = 1e30;
  for (uint64_t blob = 0; blob < 8; ++blob) {
    double squared = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const uint64_t key =
          (static_cast<uint64_t>(number) * 8 + blob) * 3 + static_cast<uint64_t>(axis);
      const double centre = size[axis] * (0.15 + 0.7 * hash_unit(kSeed, kCentre, key));
      squared += (at[axis] - centre) * (at[axis] - centre);
    }
    nearest = std::min(nearest, std::sqrt(squared) / radius);
  }
  return nearest;
}

}  // namespace

voxels::TrainingVolume noise_and_blobs(const Vec3i& size, int number) {
  const Grid grid{size, {1, 1, 1}, {0, 0, 0}, {}};
  voxels::TrainingVolume out{"blobs", 0, Volume<int16_t>(grid), Volume<uint8_t>(grid),
                             std::to_string(number)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const uint64_t key = static_cast<uint64_t>(number) << 40 | static_cast<uint64_t>(i);
    const double distance = blob_distance(size, number, grid.voxel(i));
    const bool swapped = hash_unit(kSeed, kSwap, key) < 0.3;
    out.classes[i] = (distance < 1) != swapped ? 1 : 0;
    const double noise = 500 * (hash_unit(kSeed, kNoise, key) - 0.5);
    const double value = (distance < 1 ? 600.0 : 400.0) - 60 * std::min(distance, 3.0) + noise;
    out.voxels[i] = static_cast<int16_t>(std::clamp(value, 0.0, 1023.0));
  }
  return out;
}

pbt::Model synthetic_model(const SyntheticTree& spec) {
  voxels::TrainConfig config;
  config.features.count = 300;
  config.features.pyramid_levels = spec.levels;
  config.samples = {20000, 20000};
  config.tree.depth = spec.depth;
  config.tree.selected_positives = 500;
  config.tree.selected_negatives = 500;
  config.tree.worst_error = 0.5;
  config.tree.min_samples = 2;
  config.tree.min_class_samples = 1;
  config.tree.routing_band = 0.2;
  Context context;
  context.threads = machine_threads();
  context.seed = kSeed;
  pbt::Model model = pbt::train_trees({noise_and_blobs({96, 96, 96}, 1)}, image::ModelSpace{},
                                      config, {}, nullptr, context);
  const auto inner = std::count_if(model.nodes.begin(), model.nodes.end(),
                                   [](const pbt::Node& node) { return !node.is_leaf(); });
  if (spec.depth == 6 && inner != 63) {
    throw std::runtime_error("the synthetic tree has " + std::to_string(inner) +
                             " inner nodes instead of 63");
  }
  return model;
}

pbt::Model single_classifier() {
  pbt::Model model = synthetic_model();
  std::vector<features::HaarFeature> pairs;
  for (const auto& feature : features::make_haar_pool({2000, 17, {2, 3, 4, 6, 8}, 1, kSeed})) {
    const bool wanted = feature.type == features::HaarType::kOffsetPair &&
                        features::corner_taps(feature).size() == 16;
    if (wanted && pairs.size() < 40) pairs.push_back(feature);
  }
  model.features = pairs;
  model.weaks.resize(40);
  for (uint32_t w = 0; w < 40; ++w) {
    model.weaks[w].feature = w;
    model.weaks[w].codes = learning::make_code_map(-20000, 20000);
    model.weaks[w].bins = {0, 2};
    model.weaks[w].mask = 0xffffffff00000000u ^ (uint64_t{1} << w);
  }
  const pbt::Node left = model.nodes[static_cast<size_t>(model.nodes[0].left)];
  const pbt::Node right = model.nodes[static_cast<size_t>(model.nodes[0].right)];
  model.nodes = {model.nodes[0], left, right};
  model.nodes[0].first_weak = 0;
  model.nodes[0].n_weak = 40;
  for (size_t child = 1; child < 3; ++child) {
    model.nodes[child].left = model.nodes[child].right = -1;
    model.nodes[child].n_weak = 0;
  }
  return model;
}

double taps_per_voxel(const pbt::Model& model, const Volume<int16_t>& image) {
  Context context;
  const auto set =
      image::integral_set(image.view(), model.channels, model.padding, model.reach(), context);
  const pbt::CompiledTree flat = pbt::compile(model).at(0);
  const tree::TreeView view = flat.view();
  int64_t taps = 0, voxels = 0;
  for (int64_t i = 5; i < image.voxels(); i += std::max<int64_t>(1, image.voxels() / 997)) {
    const Vec3i at = image.grid().voxel(i);
    const auto value = [&](int32_t w) {
      uint32_t sum = 0;
      for (const features::Tap& tap : flat.taps_of(static_cast<size_t>(w))) {
        const int64_t offset = features::linear_tap(tap, set.layouts).offset;
        sum += static_cast<uint32_t>(tap.weight) *
               set.data.data()[set.layouts[tap.channel].base(at) + offset];
        ++taps;
      }
      return static_cast<int32_t>(sum);
    };
    tree::tree_posterior(view, value);
    ++voxels;
  }
  return static_cast<double>(taps) / static_cast<double>(voxels);
}

std::vector<Place> places() {
  const int threads = machine_threads();
  std::vector<Place> all;
  Context context;
  context.threads = threads;
  all.push_back({"cpu/threads:" + std::to_string(threads), context});
  if (threads > 1) {
    context.threads = 1;
    all.push_back({"cpu/threads:1", context});
  }
  if (cuda_device_count() > 0) {
    context.threads = threads;
    context.device = Device::cuda();
    all.push_back({"cuda:0", context});
  }
  return all;
}

}  // namespace larch::perf
