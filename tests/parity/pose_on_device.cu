// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/learning/response_source.cuh"
#include "larch/tree/train/score.h"
#include "tests/parity/pose_on_device.h"
#include "tests/unit/learning/pose_tree.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace larch::fixtures {
namespace {

/// Volume and poses of a scene on a device.
struct DeviceScene {
  DeviceScene(const PoseScene& scene, const Device& device)
      : voxels(device, std::span<const int16_t>(scene.voxels)),
        poses(device, std::span<const Pose>(scene.poses)),
        response{voxels.data(), scene.size, poses.data()},
        source(response, kPoseColumns, "gradient at point", device) {}

  Buffer<int16_t> voxels;
  Buffer<Pose> poses;
  GradientAtPose response;
  learning::cuda::ResponseSource<GradientAtPose> source;
};

}  // namespace

PoseResult run_poses_on_device(const PoseScene& training, const PoseScene& test,
                               const Context& context) {
  const DeviceScene there(training, context.device), test_there(test, context.device);
  PoseResult result;
  result.trees = grow_pose_tree(there.source, training.samples, context);
  result.posterior = tree::posteriors(result.trees, test_there.source, test.poses.size(), context);
  result.forest = grow_pose_forest(there.source, training.samples, context);
  return result;
}

}  // namespace larch::fixtures
