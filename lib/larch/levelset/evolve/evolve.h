// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/context.h"
#include "larch/levelset/evolve/field.h"
#include "larch/levelset/levelset_config.h"
#include "larch/levelset/step/step_math.h"

// The loop of a level-set segmentation: Roberts, Packer, Sousa, Mitchell, "A work-efficient GPU
// algorithm for level set segmentation", High Performance Graphics 2010.
namespace larch::levelset {

/// Fields that are moved together: the labels of one image, which never overlap after a step (the
/// sum of two is at least 0) and stop together.
struct EvolveJob {
  Tracker tracker = Tracker::kBrick;
  StopRules stops{};
  std::vector<LevelsetField> fields{};  ///< of one layout
  Progress progress{};                  ///< where to go on, and how far it came
  // By field, made by evolve():
  std::vector<int64_t> inside{};  ///< voxels; counted where the active sets are not known
  /// Which voxels (BrickLayout::offset) or bricks the next step computes; between two calls, on
  /// the host, in ascending order. A job that has stopped has none.
  ///
  /// Unless they are known they are found: voxels around which phi is not constant on the stencil,
  /// whose two buffers differ, or that overlap with another field; bricks with such a voxel; all of
  /// them in each field. They must be made unknown whenever anything but phi has changed: speeds,
  /// dt, the tracker.
  std::vector<std::vector<uint32_t>> active{};
  bool is_active_known = false;
  std::vector<std::vector<StepCount>> history{};  ///< by step as well; appended to
  int32_t most_blocks = 0;  ///< of threads, in a launch on the device; 0: all that run at once
};

/// Moves the fields of a job by `steps` steps, or until it stops, or until context.stop is set. A
/// job whose active sets are empty at first is at rest after no step. On the device one launch
/// makes up to 2000 steps of bricks or listed voxels, and nothing is read back before it ends.
///
/// A field gets the same bits with any tracker, on any device, with any number of threads, and
/// however the steps are divided into calls. Throws DeviceError where the card cannot run all
/// blocks of a launch at once, MemoryError that gives the bytes needed, UsageError for an image of
/// more voxels than a list of voxels can number, and on the device for more than 32767 labels or an
/// axis of more than 524280 voxels.
void evolve(EvolveJob& job, int64_t steps, const Context& context);

// For trackers.
/// In a list of voxels: none.
constexpr uint32_t kNoVoxel = UINT32_MAX;
/// Throws UsageError for an image of more voxels than a list can number.
void check_voxels_fit(const BrickLayout& layout);
/// Ends a job before its first step if nothing is active or all steps are made.
void stop_before_steps(EvolveJob& job, bool is_empty);
/// Tells whether a job makes another step.
inline bool goes_on(const EvolveJob& job, const Context& context) {
  return job.progress.stop == Stop::kNone && !context.stop_requested();
}

namespace cuda {
void evolve_buffers(EvolveJob& job, int64_t steps, const Context& context);
void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
