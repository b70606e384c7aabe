// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/features/box.h"
#include "larch/image/integral.h"

namespace larch::voxels {

/// Items that wait at a level of a queue walk on a GPU at most, and the least such bound.
constexpr int64_t kMaximumQueueItems = int64_t{1} << 24;
constexpr int64_t kMinimumQueueItems = int64_t{1} << 16;

/// How a volume is cut along z, so that the integral channels of one slab fit into memory. Slab i
/// evaluates the slices [i * core, min((i + 1) * core, size.z)) and integrates `halo` more on both
/// sides, as far as the volume goes.
struct SlabPlan {
  int32_t core = 0;   ///< a multiple of 2^(coarsest level), unless there is one slab
  int32_t halo = 0;   ///< a multiple of 2^(coarsest level)
  int32_t count = 1;  ///< slabs
  int64_t bytes = 0;  ///< what the largest slab takes on the device
  int64_t queue_items = kMaximumQueueItems;  ///< for the queue walk, lowered before slabs are cut
};

/// Holds what of a model the cutting of a volume depends on.
struct SlabNeeds {
  std::span<const image::ChannelSpec> channels;
  image::Padding padding = image::Padding::kClamp;
  Vec3i reach{};                ///< of its features
  int32_t halo = 0;             ///< slices that the result of a slice depends on, on either side
  int64_t model_bytes = 0;      ///< of the trees, on the host and on a GPU
  int64_t gpu_bytes = 0;        ///< on a GPU alone
  int64_t gpu_voxel_bytes = 0;  ///< the same for each voxel, beside the channels and the result
  int64_t components = 1;       ///< of the image
  /// Bytes of the queues on a GPU for so many voxels and items that wait; empty: it has none.
  std::function<int64_t(int64_t voxels, int64_t queue_items)> queue_bytes{};
};
/// Returns the halo of features on these channels, rounded up to whole voxels of the coarsest
/// level.
int32_t halo_of(std::span<const features::BoxFeature> features,
                std::span<const image::ChannelSpec> channels);

/// Holds what is known before a plan is made.
struct SlabProblem {
  Vec3i size{};
  int bytes_per_value = 4;   ///< of the result
  bool roi = false;          ///< a region of interest is given
  bool on_gpu = false;       ///< the voxels of a slab are copied to the device
  int64_t memory_bytes = 0;  ///< what a slab may take
};

/// Returns the fewest slabs of about equal thickness that fit. Throws MemoryError, with the bytes
/// that the thinnest slab takes, if memory_bytes is less.
SlabPlan plan_slabs(const SlabNeeds& needs, const SlabProblem& problem);
/// Calls work(channels, grid, first slice, region of interest) for the slabs of an image in model
/// space, one after the other. `roi`: of the image, may be null. Throws Stopped between slabs.
using SlabWork = std::function<void(const image::IntegralSet& set, const Grid& grid, int32_t first,
                                    const Volume<uint8_t>* roi)>;
void for_slabs(const SlabNeeds& needs, std::span<const Volume<int16_t>> components,
               const SlabPlan& plan, const Volume<uint8_t>* roi, const Context& context,
               const SlabWork& work);

/// Copies slices from `first` on to those from `to_first` on, as many as both have.
template <class T>
void copy_slices(const Volume<T>& from, int64_t first, Volume<T>& to, int64_t to_first) {
  const int64_t plane = static_cast<int64_t>(to.size().x) * to.size().y;
  const int64_t slices = std::min(from.size().z, to.size().z);
  std::copy_n(from.data() + plane * first, plane * slices, to.data() + plane * to_first);
}

/// Returns bytes that an evaluation may take if nobody says how many: nine tenths of what is free
/// on a GPU, eight tenths on the host.
int64_t default_memory_bytes(const Device& device);

/// Returns the problem of a volume on a device; memory_bytes 0: default_memory_bytes.
SlabProblem slab_problem(const Vec3i& size, bool roi, int64_t memory_bytes, const Device& device);

}  // namespace larch::voxels
