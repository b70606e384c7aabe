// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/context.h"
#include "larch/levelset/evolve/field.h"
#include "larch/levelset/levelset_config.h"
#include "larch/levelset/step/stop_math.h"

// The loop of a level-set segmentation: Roberts, Packer, Sousa, Mitchell, "A work-efficient GPU
// algorithm for level set segmentation", High Performance Graphics 2010.
namespace larch::levelset {

/// Which voxels (BrickLayout::offset) or bricks the next step computes; between two calls, on the
/// host, in ascending order. A field that has stopped has none.
///
/// Unless it is known it is found: voxels around which phi is not constant on the stencil, whose
/// two buffers differ, or that overlap with another field of the group; bricks with such a voxel;
/// in a group, those of all its fields. So it is of a new job, and it must be made unknown whenever
/// anything but phi has changed: speeds, dt, the tracker.
struct ActiveSet {
  std::vector<uint32_t> items{};
  bool is_known = false;
};

/// Fields that are moved together: labels of one image, images of a batch.
struct EvolveJob {
  const LevelsetConfig* config = nullptr;
  StopRules stops{};
  std::vector<LevelsetField*> fields{};
  // By field, made by evolve() where they are empty:
  std::vector<FieldProgress> progress{};  ///< where to go on, and how far it came
  std::vector<ActiveSet> active{};
  std::vector<std::vector<StepCount>> history{};  ///< by step as well; appended to
  int32_t most_blocks = 0;  ///< of threads, in a launch on the device; 0: all that run at once
};

/// Moves every field that has not stopped by `steps` steps, or until it stops, or until
/// context.stop is set. A field whose active set is empty at first is at rest after no step; all of
/// a group are at rest, and stop, together. On the device one launch makes up to 2000 steps of
/// bricks or listed voxels, and nothing is read back before it ends.
///
/// Every field gets the bits that it gets alone, with any tracker, on any device, with any number
/// of threads, and however the steps are divided into calls. Throws DeviceError where the card
/// cannot run all blocks of a launch at once, MemoryError that gives the bytes needed, UsageError
/// for an image of more voxels than a list of voxels can number, and on the device for more than
/// 32767 labels of one image or an axis of more than 524280 voxels.
void evolve(EvolveJob& job, int64_t steps, const Context& context);

/// Fields [first, last) of a job that move together: a group, or one that is alone.
struct FieldRange {
  size_t first = 0, last = 0;
};
/// Throws std::logic_error where fields of a group do not stand side by side or differ in size.
std::vector<FieldRange> groups_of(const EvolveJob& job);
/// Sets why the fields of a group stop.
void stop_group(EvolveJob& job, const FieldRange& group, Stop stop);
/// Ends a step of a group: updates the progress, and appends the counts, one per field of the
/// group, to the histories.
void finish_step(EvolveJob& job, const FieldRange& group, const std::vector<StepCount>& counts);

namespace cpu {
void evolve_buffers(EvolveJob& job, int64_t steps, const Context& context);
void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context);
}  // namespace cpu
namespace cuda {
void evolve_buffers(EvolveJob& job, int64_t steps, const Context& context);
void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
