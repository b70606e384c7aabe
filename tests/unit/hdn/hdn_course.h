// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "larch/hdn/detect.h"
#include "larch/hdn/train/train.h"
#include "larch/image/preprocess.h"
#include "larch/phantom/poses.h"
#include "larch/voxels/pool.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// A small training: phantoms of 128 mm, two levels, and little of everything.
struct Course {
  phantom::PosesConfig phantom;
  std::vector<hdn::TrainingCase> cases;
  hdn::HdnConfig config;
  hdn::SharedConfig shared;
  hdn::Model start;

  /// `parents`: the structures, each with the name of its parent.
  explicit Course(int side, const std::vector<std::pair<std::string, std::string>>& parents) {
    phantom.size = {side, side, side};
    phantom.spacing_mm = {128.0 / side, 128.0 / side, 128.0 / side};
    phantom.structures = static_cast<int>(parents.size());
    for (const auto& [name, parent] : parents) {
      config.structures.push_back({name, {}, parent});
    }
    config.halvings = 1;
    config.rotation_step_deg = {15, 7.5};
    config.keep_first = {100, 50, 50};
    config.keep = {50, 25, 25};
    config.folds = 2;
    config.positives_per_volume = 20;
    config.negatives_per_volume = 200;
    shared.features.count = 500;
    shared.features.window = 9;
    shared.tree.depth = 2;
    shared.tree.rounds = {8};
    shared.tree.min_samples = 20;
    shared.tree.min_class_samples = 5;
    shared.forest.trees = 20;
    shared.forest.depth = 8;
    shared.forest.min_leaf = 3;
    shared.forest.class_weights = tree::ClassWeights::kBalanced;
    shared.validation.fraction = 0;
  }

  Volume<int16_t> image(int number) const {
    const Volume<int16_t> made = phantom::make_poses(phantom, 1, number, 2).image;
    const auto values = mapped<float>(made, [](int16_t v) { return static_cast<float>(v); });
    return image::to_model_space(values, start.space, context_of(2), "phantom");
  }
  std::vector<std::optional<Pose>> poses(int number) const {
    std::vector<std::optional<Pose>> truth;
    for (const phantom::PlacedObject& o : phantom::place_objects(phantom, 1, number)) {
      if (o.label > 0) truth.emplace_back(o.pose);
    }
    return truth;
  }

  /// Makes cases 0 to count - 1, without the poses that `edit(number, poses)` takes away.
  template <class Edit>
  void prepare(int count, Edit&& edit) {
    start = {};
    const double mm = phantom.spacing_mm[0];
    start.space.spacing_mm = {mm, mm, mm};
    start.halvings = config.halvings;
    start.prior_weight = config.prior_weight;
    start.channels = voxels::channel_specs(shared.features);
    for (const size_t i : hdn::check_config(config)) {
      const hdn::StructureConfig& s = config.structures[i];
      hdn::Structure& structure = start.structures.emplace_back();
      structure.name = s.name;
      for (size_t p = 0; p + 1 < start.structures.size(); ++p) {
        if (start.structures[p].name == s.parent) structure.parent = static_cast<int32_t>(p);
      }
    }
    cases.clear();
    for (int n = 0; n < count; ++n) {
      std::vector<std::optional<Pose>> truth = poses(n);
      edit(n, truth);
      const Volume<int16_t> voxels = image(n);
      cases.push_back(hdn::make_training_case(std::to_string(n), voxels, voxels.grid(), truth,
                                              config.halvings, context_of(2)));
    }
    std::sort(cases.begin(), cases.end(),
              [](const auto& a, const auto& b) { return a.digest < b.digest; });
    for (size_t c = 0; c < cases.size(); ++c) cases[c].group = c;
  }
  void prepare(int count) {
    prepare(count, [](int, auto&) {});
  }

  hdn::Model train(int threads = 2, const hdn::TrainHooks& hooks = {}) const {
    hdn::TrainReport report;
    return hdn::train_network(cases, start, config, shared, hooks, report, context_of(threads));
  }
};

inline std::vector<hdn::FoundStructure> detect(const hdn::ResidentModel& network,
                                               const Volume<int16_t>& image) {
  auto found = hdn::detect(network, image, image.grid(), context_of(2));
  hdn::correct(network.model, found, image, image.grid(), context_of(2));
  return found;
}

}  // namespace larch::fixtures
