// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
//
// The learner on a source without taps, whose samples are poses: a struct with one function.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/tree/train/score.h"
#include "tests/unit/learning/pose_tree.h"

namespace {

using namespace larch;

TEST_CASE("A tree on gradients at posed grids tells poses near the structure from others") {
  const fixtures::PoseScene training(1200, 1), test(800, 2);
  const Context context = fixtures::cpu_context(2);
  const auto source = fixtures::pose_source(training), test_source = fixtures::pose_source(test);
  const tree::Ensemble trees = fixtures::grow_pose_tree(source, training.samples, context);
  REQUIRE(trees.nodes.size() > 1);
  const auto posterior = tree::posteriors(trees, test_source, test.poses.size(), context);
  size_t wrong = 0;
  for (size_t i = 0; i < posterior.size(); ++i) {
    wrong += (posterior[i] > 0.5) != (test.samples.positive[i] != 0);
  }
  CHECK(wrong < posterior.size() / 20);
}

TEST_CASE("A tree on poses depends on the samples alone, not on the threads") {
  const fixtures::PoseScene training(600, 3);
  const auto source = fixtures::pose_source(training);
  const auto one = fixtures::grow_pose_tree(source, training.samples, fixtures::cpu_context(1));
  const auto many = fixtures::grow_pose_tree(source, training.samples, fixtures::cpu_context(3));
  fixtures::check_same_ensembles(one, many);
}

}  // namespace
