// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"

namespace larch::pbt {

/// How a volume is cut along z, so that the integral channels of one slab fit into memory. Slab i
/// evaluates the slices [i * core, min((i + 1) * core, size.z)) and integrates `halo` more on both
/// sides, as far as the volume goes.
struct SlabPlan {
  int32_t core = 0;   ///< a multiple of 2^(coarsest level), unless there is one slab
  int32_t halo = 0;   ///< a multiple of 2^(coarsest level)
  int32_t count = 1;  ///< slabs
  int64_t bytes = 0;  ///< what the largest slab takes on the device
  int64_t queue_items = kMostQueueItems;  ///< for the queue walk, lowered before slabs are cut
};

/// Slices that the posterior of a slice depends on, on either side, rounded up to whole voxels of
/// the coarsest level: its features reach so far, and the rules of their channels by their radius
/// farther.
int32_t slab_halo(const Model& model);

/// What is known before a plan is made.
struct SlabProblem {
  Vec3i size{};
  int bytes_per_value = 4;   ///< of the result
  bool roi = false;          ///< a region of interest is given
  bool on_gpu = false;       ///< the voxels of a slab are copied to the device
  bool queues = false;       ///< a GPU may lead voxels through the tree in queues
  int64_t memory_bytes = 0;  ///< what a slab may take
};

/// The fewest slabs of about equal thickness that fit. Throws MemoryError, with the bytes that the
/// thinnest slab takes, if memory_bytes is less.
SlabPlan plan_slabs(const Model& model, const SlabProblem& problem);

/// Bytes that an evaluation may take if nobody says how many: nine tenths of what is free on a GPU,
/// eight tenths on the host.
int64_t default_memory_bytes(const Device& device);

/// The posterior of every voxel of a volume in model space, as `evaluate` gives it, slab by slab as
/// the plan says. `roi` may be null. Throws MemoryError, and Stopped between slabs.
template <class T>
Volume<T> evaluate_slabs(const Model& model, const Volume<int16_t>& voxels,
                         const EvaluateConfig& config, const SlabPlan& plan, const Context& context,
                         const Volume<uint8_t>* roi = nullptr);

/// The same with the plan for so much memory: the result does not depend on memory_bytes (0:
/// default_memory_bytes). What a slab takes beside `voxels` and the result is at most memory_bytes.
template <class T>
Volume<T> evaluate_volume(const Model& model, const Volume<int16_t>& voxels,
                          const EvaluateConfig& config, int64_t memory_bytes,
                          const Context& context, const Volume<uint8_t>* roi = nullptr);

}  // namespace larch::pbt
