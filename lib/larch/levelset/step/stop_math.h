// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"

// When a level set is at its end, from integers alone, so that both devices and both trackers stop
// after the same step.
namespace larch::levelset {

/// Why a field is no longer moved.
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

/// When a field stops. Fields of one group stop together: what their voxels did is added up; the
/// limit of the volume is that of each.
struct StopRules {
  int64_t max_iterations = 10000;
  int64_t unchanged_labels = 200;  ///< 0: never
  int64_t most_voxels = 0;         ///< inside; 0: no limit
};

/// How far a field is.
struct FieldProgress {
  int64_t iterations = 0;  ///< phi[iterations % 2] is the result
  int64_t quiet = 0;       ///< steps since a voxel of the field's group changed its side
  int64_t inside = 0;      ///< voxels; evolve counts them where the active set is not known
  Stop stop = Stop::kNone;
};

/// A step of all fields of a group.
struct GroupStep {
  uint64_t changed = 0, flipped = 0;
  int64_t most_inside = 0;  ///< of one field

  /// `progress` is that before the step.
  LARCH_HD void add(const StepCount& step, const FieldProgress& progress) {
    changed += step.changed;
    flipped += step.flipped;
    const int64_t inside = progress.inside + step.grown;
    if (inside > most_inside) most_inside = inside;
  }
};

/// The progress of a field after a step.
LARCH_HD FieldProgress advanced(FieldProgress progress, const StepCount& step,
                                const GroupStep& group, const StopRules& rules) {
  ++progress.iterations;
  progress.inside += step.grown;
  progress.quiet = group.flipped == 0 ? progress.quiet + 1 : 0;
  if (group.changed == 0) {
    progress.stop = Stop::kAtRest;
  } else if (rules.unchanged_labels > 0 && progress.quiet >= rules.unchanged_labels) {
    progress.stop = Stop::kLabels;
  } else if (rules.most_voxels > 0 && group.most_inside > rules.most_voxels) {
    progress.stop = Stop::kVolume;
  } else if (progress.iterations >= rules.max_iterations) {
    progress.stop = Stop::kIterations;
  }
  return progress;
}

/// Before a step: does a field of a group stop without it? `is_empty`: nothing of the group is
/// active.
LARCH_HD Stop stop_before(const FieldProgress& progress, bool is_empty, const StopRules& rules) {
  if (progress.stop != Stop::kNone) return progress.stop;
  if (is_empty) return Stop::kAtRest;
  return progress.iterations >= rules.max_iterations ? Stop::kIterations : Stop::kNone;
}

}  // namespace larch::levelset
