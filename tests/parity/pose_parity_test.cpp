// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/core/dispatch.h"
#include "larch/tree/train/score.h"
#include "tests/parity/pose_on_device.h"
#include "tests/unit/learning/pose_tree.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace larch {
namespace {

TEST_CASE("a tree on a source without taps is the same bytes on both devices",
          "[learning::matrix_votes]") {
  using Run = fixtures::PoseResult (*)(const fixtures::PoseScene&, const fixtures::PoseScene&,
                                       const Context&);
  const Run run = LARCH_CUDA_FN(fixtures::run_poses_on_device);
  REQUIRE(run != nullptr);
  const fixtures::PoseScene training(1200, 1), test(800, 2);
  const Context cpu = fixtures::cpu_context(2);
  Context gpu = cpu;
  gpu.device = Device::cuda();
  const auto trees =
      fixtures::grow_pose_tree(fixtures::pose_source(training), training.samples, cpu);
  const fixtures::PoseResult there = run(training, test, gpu);
  fixtures::check_same_ensembles(trees, there.trees);
  const size_t count = test.poses.size();
  CHECK(tree::posteriors(trees, fixtures::pose_source(test), count, cpu) == there.posterior);
  const auto forest =
      fixtures::grow_pose_forest(fixtures::pose_source(training), training.samples, cpu);
  CHECK(fixtures::same(forest, there.forest));
}

}  // namespace
}  // namespace larch
