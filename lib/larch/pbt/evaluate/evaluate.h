// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/image/integral.h"
#include "larch/pbt/evaluate/compiled_model.h"
#include "larch/pbt/evaluate/evaluate_config.h"
#include "larch/pbt/evaluate/walk_queues.h"
#include "larch/pbt/model.h"
#include "larch/voxels/slabs.h"

namespace larch::pbt {

/// Returns the posterior of every voxel of an image: Algorithms 1 and 2 of Birkbeck et al. Where
/// `roi` is given and 0, the result is 0 and nothing is computed. `set` must have been made with
/// the model's channels and padding and a pad of at least model.reach_along(), on context.device,
/// which is that of the model; its stream may be another one. `queue_items`: most that may wait at
/// a level of the queue walk; the result does not depend on it. Throws UsageError if the set does
/// not fit the model, MemoryError.
Volume<float> evaluate(const ResidentModel& resident, const image::IntegralSet& set,
                       const Grid& grid, const EvaluateConfig& config, const Context& context,
                       const Volume<uint8_t>* roi = nullptr,
                       int64_t queue_items = kMaximumQueueItems);

/// Holds what one implementation receives; every pointer is of its device, except those of the
/// host.
struct EvaluateJob {
  Vec3i size{};
  std::span<const image::IntegralLayout> layouts;  ///< host
  const uint32_t* integral = nullptr;
  const WalkPlan* plan = nullptr;  ///< the result is the mean of its trees
  Walk walk = Walk::kTile;
  tree::Thresholds thresholds;
  const uint8_t* roi = nullptr;              ///< host, may be null
  float* out = nullptr;                      ///< host
  int64_t queue_items = kMaximumQueueItems;  ///< of the queue walk, at a level
};
namespace cpu {
void evaluate(const EvaluateJob& job, const Context& context);
}  // namespace cpu
namespace cuda {
void evaluate(const EvaluateJob& job, const Context& context);
}  // namespace cuda

/// Slices that the posterior of a slice depends on, on either side, rounded up to whole voxels of
/// the coarsest level: its features reach so far, and the rules of their channels by their radius
/// farther.
int32_t slab_halo(const Model& model);

/// Returns what the slabs of an evaluation depend on.
SlabNeeds needs_of(const Model& model);
inline SlabPlan plan_slabs(const Model& model, const SlabProblem& problem) {
  return plan_slabs(needs_of(model), problem);
}

/// The posterior of every voxel of a volume in model space, as `evaluate` gives it, slab by slab as
/// the plan says. `roi` may be null. Throws MemoryError, and Stopped between slabs.
Volume<float> evaluate_slabs(const ResidentModel& resident,
                             std::span<const Volume<int16_t>> components,
                             const EvaluateConfig& config, const SlabPlan& plan,
                             const Context& context, const Volume<uint8_t>* roi = nullptr);

/// Returns the same with the plan for so much memory: the result does not depend on memory_bytes
/// (0: default_memory_bytes). What a slab takes beside `voxels` and the result is at most
/// memory_bytes.
Volume<float> evaluate_volume(const ResidentModel& resident,
                              std::span<const Volume<int16_t>> components,
                              const EvaluateConfig& config, int64_t memory_bytes,
                              const Context& context, const Volume<uint8_t>* roi = nullptr);

}  // namespace larch::pbt
