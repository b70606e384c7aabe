// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/hdn/train/train.h"
#include "tests/unit/models/model_fixtures.h"

namespace larch::fixtures {

/// Random trees on the first features of their kind.
inline hdn::Detector random_detector(hdn::StageKind kind, int level, uint64_t seed) {
  RandomTree spec;
  spec.depth = 2;
  spec.weaks = 3;
  spec.features = 24;
  spec.stop = 0;
  const pbt::Model trees = random_model(seed, spec);
  hdn::Detector d;
  d.stage.kind = kind;
  d.stage.level = level;
  d.stage.keep = 20;
  static_cast<tree::Ensemble&>(d.trees) = trees;
  if (kind == hdn::StageKind::kPosition) {
    d.haar = trees.features;
  } else {
    for (uint8_t i = 0; i < 24; ++i) {
      d.steerable.push_back({features::SteerableType::kLogAngleD, uint8_t(i % 3), uint8_t(5 * i)});
    }
  }
  if (kind == hdn::StageKind::kOrientation) {
    d.stage.rotations = {{}, canonical({0.9, 0.1, -0.2, 0.3})};
  }
  if (kind == hdn::StageKind::kScale) d.stage.log_scales = {{0, 0, 0}, {0.1, -0.1, 1.0 / 3}};
  d.trees.self_tests = tree::make_self_tests(d.trees, 24, seed);
  return d;
}

/// A network of two structures in which no member has the value it begins with.
inline hdn::Model full_network() {
  using hdn::StageKind;
  const pbt::Model like = full_model();
  hdn::Model model;
  model.space = like.space;
  model.space.spacing_mm = {1.5, 1.5, 1.5};
  model.padding = like.padding;
  model.halvings = 1;
  model.channels = like.channels;
  model.prior_weight = 0.5;
  model.mean_of_first = 100;
  model.info = {"0.1.0", R"({"hdn":{"folds":4}})", {"00ff", "aa11"}, 77, {{"failures", 0.125}}};
  hdn::Structure head, eye;
  head.name = "head";
  head.labels = {3, 4};
  head.mean = {{0, 0, 0}, canonical({0.8, 0.1, 0.2, -0.3}), {150, 180, 1.0 / 3}};
  head.errors.mean.fill(0.1);
  for (size_t i = 0; i < 9; ++i) head.errors.covariance[10 * i] = 1.0 / 7;
  head.errors.count = 12;
  head.agreement_rad = {0.5, 0.25};
  head.calibration = {{0.5, -1.25}, 0.75, 0.375};
  head.symmetries = {{0, 0, 0, 1}};
  eye = head;
  eye.name = "left eye";
  eye.parent = 0;
  eye.to_parent = head.errors;
  head.appearance.gains = {0.5, 0, 1, 0.25, 1.0 / 3, 0.125, 0, 0, 0.75};
  for (size_t k = 0; k < hdn::kAppearancePoints; ++k) {
    head.appearance.mean.push_back(static_cast<int32_t>(k % 31) * 100 - 2000);
    head.appearance.weight.push_back(static_cast<int32_t>(k % 3));
  }
  for (const StageKind kind : {StageKind::kPosition, StageKind::kOrientation, StageKind::kScale}) {
    head.detectors.push_back(random_detector(kind, 0, 5 + static_cast<uint64_t>(kind)));
  }
  eye.detectors = {random_detector(StageKind::kPosition, 0, 8),
                   random_detector(StageKind::kPosition, 1, 9)};
  eye.root_position = {random_detector(StageKind::kPosition, 0, 10)};
  model.structures = {head, eye};
  return model;
}

/// The training of such a network after the first stage, with two cases.
inline hdn::PartialTraining full_training() {
  hdn::PartialTraining training;
  training.model = full_network();
  training.model.structures[0].detectors.resize(1);
  training.model.structures[1].detectors.clear();
  training.model.structures[1].root_position.clear();
  training.model.structures[1].to_parent = {};
  training.found.assign(2, std::vector<hdn::CaseState>(2));
  const Pose pose{{1, 2, 1.0 / 3}, canonical({0.7, 0.1, 0.2, 0.3}), {10, 20, 30}};
  training.found[0][1].candidates = {{pose, 0.1F, -700.25F}};
  training.found[0][1].clusters = {{pose, 0.5, 3, 1.25, 0.125, 7}};
  training.elsewhere = training.found;
  training.elsewhere[0][0].log_odds = -3.25;
  training.report.stages = {
      {"head", hdn::StageKind::kPosition, 0, 2, 30, 400, 1, {0, -1}, 1.5, 0.5, 2.5, 0.25}};
  return training;
}

}  // namespace larch::fixtures
