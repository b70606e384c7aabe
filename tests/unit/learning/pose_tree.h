// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/learning/response_source.h"
#include "larch/tree/train/grow.h"
#include "tests/unit/learning/pose_source.h"
#include "tests/unit/learning/table_source.h"

namespace larch::fixtures {

inline constexpr size_t kPoseColumns =
    size_t{GradientAtPose::kSide} * GradientAtPose::kSide * GradientAtPose::kSide;

inline GradientAtPose response_of(const PoseScene& scene) {
  return {scene.voxels.data(), scene.size, scene.poses.data()};
}
inline learning::ResponseSource<GradientAtPose> pose_source(const PoseScene& scene) {
  return {response_of(scene), kPoseColumns, "gradient at point"};
}

/// A small tree, grown on all samples of a source on whatever device it is.
inline tree::Ensemble grow_pose_tree(const learning::FeatureSource& source,
                                     const tree::Samples& samples, const Context& context) {
  tree::TreeConfig config;
  config.depth = 3;
  config.rounds = {12};
  config.min_samples = 20;
  config.min_class_samples = 5;
  const tree::ValidationConfig validation;
  const tree::Samples none;
  std::vector<uint32_t> all(std::min<size_t>(samples.size(), learning::kMaximumRanged));
  std::iota(all.begin(), all.end(), 0u);
  const auto maps = source.range(all, context);
  tree::GrowTask task{config, validation, {source, samples}, {source, none}, maps};
  task.seed = 5;
  return tree::grow(tree::start_tree(config, samples), task, context).tree;
}

inline void check_same_ensembles(const tree::Ensemble& a, const tree::Ensemble& b) {
  REQUIRE(a.nodes.size() == b.nodes.size());
  REQUIRE(a.weaks.size() == b.weaks.size());
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    CHECK(a.nodes[n].left == b.nodes[n].left);
    CHECK(a.nodes[n].n_weak == b.nodes[n].n_weak);
    CHECK(a.nodes[n].mass_positive == b.nodes[n].mass_positive);
    CHECK(a.nodes[n].mass_negative == b.nodes[n].mass_negative);
  }
  for (size_t w = 0; w < a.weaks.size(); ++w) {
    CHECK(a.weaks[w].feature == b.weaks[w].feature);
    CHECK(learning::same_map(a.weaks[w].codes, b.weaks[w].codes));
    CHECK(a.weaks[w].bins.first_code == b.weaks[w].bins.first_code);
    CHECK(a.weaks[w].bins.shift == b.weaks[w].bins.shift);
    CHECK(a.weaks[w].mask == b.weaks[w].mask);
    CHECK(a.weaks[w].alpha_q20 == b.weaks[w].alpha_q20);
  }
}

}  // namespace larch::fixtures
