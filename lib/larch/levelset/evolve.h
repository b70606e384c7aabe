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
#include "larch/levelset/stop_math.h"

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
  /// group. All of a group have one layout, stand side by side in a job, are equally far in it
  /// (progress) and stop together. -1: in none, alone.
  int32_t group = -1;
};

/// Which voxels (BrickLayout::offset) or bricks the next step computes; between two calls, on the
/// host, in ascending order. Not known: those around which phi is not constant; in a group, those
/// of all its fields. A field that has stopped has none; Tracker::kDense sets is_known alone.
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
