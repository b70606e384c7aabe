// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/tree/ensemble.h"
#include "larch/tree/forest.h"
#include "tests/unit/learning/pose_source.h"

namespace larch::fixtures {

/// A tree that was grown on a CUDA device, what it says of the poses of another scene through the
/// learner's matrix, and a forest that was grown there.
struct PoseResult {
  tree::Ensemble trees;
  std::vector<double> posterior;
  tree::Forest forest;
};
PoseResult run_poses_on_device(const PoseScene& training, const PoseScene& test,
                               const Context& context);

}  // namespace larch::fixtures
