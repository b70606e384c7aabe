// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"

// When a level set is at its end, from integers alone, so that both devices and both trackers stop
// after the same step.
namespace larch::levelset {

/// Why fields are no longer moved.
enum class Stop : uint8_t {
  kNone,        ///< it still is
  kAtRest,      ///< no voxel changed, or none had anything to be moved by
  kLabels,      ///< no voxel changed its side for StopRules::unchanged_labels steps
  kVolume,      ///< more than StopRules::most_voxels inside
  kIterations,  ///< StopRules::max_iterations
};

/// What one step did to one field.
struct StepCount {
  uint32_t active = 0;   ///< voxels, or bricks, that were computed (depends on the tracker)
  uint32_t changed = 0;  ///< voxels whose value changed
  uint32_t flipped = 0;  ///< voxels that changed their side
  int32_t grown = 0;     ///< voxels that are inside now, minus those that were
};

/// When a job stops, by what all of its fields did in a step; the limit of the volume is that of
/// each.
struct StopRules {
  int64_t max_iterations = 10000;
  int64_t unchanged_labels = 200;  ///< 0: never
  int64_t most_voxels = 0;         ///< inside; 0: no limit
};

/// How far a job is.
struct Progress {
  int64_t iterations = 0;  ///< phi[iterations % 2] is the result
  int64_t quiet = 0;       ///< steps since a voxel changed its side
  Stop stop = Stop::kNone;
};

/// What a step did to all fields of a job.
struct StepSum {
  uint64_t changed = 0, flipped = 0;
  int64_t most_inside = 0;  ///< of one field

  /// `inside`: of the field, before the step and after it.
  LARCH_HD void add(const StepCount& step, int64_t& inside) {
    changed += step.changed;
    flipped += step.flipped;
    inside += step.grown;
    if (inside > most_inside) most_inside = inside;
  }
};

/// The progress after a step.
LARCH_HD Progress advanced(Progress progress, const StepSum& step, const StopRules& rules) {
  ++progress.iterations;
  progress.quiet = step.flipped == 0 ? progress.quiet + 1 : 0;
  if (step.changed == 0) {
    progress.stop = Stop::kAtRest;
  } else if (rules.unchanged_labels > 0 && progress.quiet >= rules.unchanged_labels) {
    progress.stop = Stop::kLabels;
  } else if (rules.most_voxels > 0 && step.most_inside > rules.most_voxels) {
    progress.stop = Stop::kVolume;
  } else if (progress.iterations >= rules.max_iterations) {
    progress.stop = Stop::kIterations;
  }
  return progress;
}

}  // namespace larch::levelset
