// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/levelset_config.h"
#include "larch/levelset/step_math.h"

// The loop of a level-set segmentation: Roberts, Packer, Sousa, Mitchell, "A work-efficient GPU
// algorithm for level set segmentation", High Performance Graphics 2010.
namespace larch::levelset {

/// A level-set function with what moves it, on one device, by brick (BrickLayout::offset).
///
/// phi stands in two buffers, which are read and written in turn: step t (from 0) reads phi[t % 2].
/// A voxel that is not computed has the same value in both.
struct LevelsetField {
  BrickLayout layout{};
  Step step{};
  Buffer<float> phi[2];
  Buffer<int16_t> speed{};       ///< D, kSpeedOne is 1; kFrozen: phi stays as it is
  Buffer<int16_t> edge_stop{};   ///< g, kSpeedOne is 1; empty: 1 everywhere
  Buffer<int16_t> advection[3];  ///< A along x, y, z, kSpeedOne is 1; empty: 0 everywhere
  /// Fields of one group never overlap: phi is at least the negative of every other one of the
  /// group. All of a group have one layout and stand side by side in a job.
  int32_t group = 0;
};

/// Why a field is no longer moved.
enum class Stop : uint8_t {
  kNone,         ///< it still is
  kAtRest,       ///< no voxel is active
  kLabels,       ///< no voxel changed its side for config.unchanged_labels steps
  kChanged,      ///< at most config.most_changed voxels changed
  kRms,          ///< root mean square change below config.rms
  kVolume,       ///< config.max_volume_ml
  kIterations,   ///< config.max_iterations
  kInterrupted,  ///< by context.stop
};

/// What one step did to one field. Integers, so that they are the same on both devices.
struct StepCount {
  uint32_t active = 0;   ///< voxels, or bricks, that were computed (depends on the tracker)
  uint32_t changed = 0;  ///< voxels whose value changed
  uint32_t flipped = 0;  ///< voxels that changed their side
  int32_t grown = 0;     ///< voxels that are inside now, minus those that were
  uint64_t squares = 0;  ///< sum of the squared changes of phi, each rounded to 2^-30
};

/// When a field stops.
struct StopRules {
  int64_t max_iterations = 10000;
  int64_t unchanged_labels = 200;  ///< 0: never
  int64_t most_changed = -1;       ///< -1: never
  double rms = 0;                  ///< 0: never
  int64_t most_voxels = 0;         ///< inside; 0: no limit
};

/// How far a field is.
struct FieldProgress {
  int64_t iterations = 0;  ///< phi[iterations % 2] is the result
  int64_t quiet = 0;       ///< steps since a voxel changed its side
  int64_t inside = 0;      ///< voxels
  Stop stop = Stop::kNone;
};

/// Which voxels or bricks the next step computes; between two calls, on the host, in ascending
/// order. Empty fields of a new job: those around which phi is not constant.
struct ActiveSet {
  std::vector<uint32_t> items{};
  bool is_known = false;
};

/// Fields that are moved together: labels of one image, images of a batch.
struct EvolveJob {
  const LevelsetConfig* config = nullptr;
  StopRules stops{};
  std::vector<LevelsetField*> fields{};
  std::vector<FieldProgress> progress{};          ///< by field; where to go on, and how far it came
  std::vector<ActiveSet> active{};                ///< by field
  std::vector<std::vector<StepCount>> history{};  ///< by field and step; appended to
};

/// Moves every field that has not stopped by `steps` steps, or until it stops. On the device the
/// steps of a call are one launch for bricks, and nothing is read back between them. Every field
/// gets the bits that it gets alone, with any tracker, on any device, with any number of threads,
/// and however the steps are divided into calls. Throws DeviceError where the card cannot run all
/// blocks of a launch at once, MemoryError that gives the bytes needed.
void evolve(EvolveJob& job, int64_t steps, const Context& context);

namespace cpu {
void evolve_dense(EvolveJob& job, int64_t steps, const Context& context);
void evolve_voxels(EvolveJob& job, int64_t steps, const Context& context);
void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context);
}  // namespace cpu
namespace cuda {
void evolve_dense(EvolveJob& job, int64_t steps, const Context& context);
void evolve_voxels(EvolveJob& job, int64_t steps, const Context& context);
void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
