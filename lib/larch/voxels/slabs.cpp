// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/slabs.h"

#include <algorithm>
#include <string>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/image/integral.h"

namespace larch::voxels {
namespace {

/// Says what does not depend on the image.
constexpr int64_t kFixedBytes = int64_t{32} << 20;
int32_t coarsest_level(std::span<const image::ChannelSpec> channels) {
  int32_t level = 0;
  for (const image::ChannelSpec& channel : channels) level = std::max(level, channel.level);
  return level;
}

int32_t round_up(int64_t value, int32_t step) {
  return static_cast<int32_t>((value + step - 1) / step * step);
}

std::string gibibytes(int64_t bytes) {
  return formatted("%.2f GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Returns what a slab of `core` slices takes on its device.
int64_t slab_bytes(const SlabNeeds& needs, const SlabProblem& problem, int64_t core, int64_t halo,
                   int64_t queue_items) {
  const int64_t plane = static_cast<int64_t>(problem.size.x) * problem.size.y;
  const int64_t slices = std::min<int64_t>(problem.size.z, core + 2 * halo);
  const Vec3i size{problem.size.x, problem.size.y, static_cast<int32_t>(slices)};
  // An image of one slice needs no more padding than the features reach across it.
  const auto layouts = image::layouts_for(size, needs.channels, needs.reach);
  const int64_t integral = 4 * image::total_elements(layouts);
  // The levels of the pyramid together have less than a seventh of the voxels, but for odd borders.
  const int64_t pyramid = coarsest_level(needs.channels) > 0 ? 2 * plane * slices / 4 : 0;
  const int64_t result = plane * core * (problem.bytes_per_value + (problem.roi ? 1 : 0));
  const int64_t host = kFixedBytes + needs.model_bytes + integral + pyramid + result +
                       image::channel_image_bytes(size, needs.channels);
  if (!problem.on_gpu) return host;
  const int64_t queues = needs.queue_bytes ? needs.queue_bytes(plane * core, queue_items) : 0;
  return host + 2 * plane * slices * needs.components + needs.gpu_bytes +
         needs.gpu_voxel_bytes * plane * core + queues;
}

/// The slices [begin, end) of a volume.
struct Slices {
  int32_t begin, end;
};

Grid grid_of(const Grid& whole, const Slices& slices) {
  Grid grid = whole;
  grid.size.z = slices.end - slices.begin;
  grid.origin_mm = world_from_index(whole, {0, 0, static_cast<double>(slices.begin)});
  return grid;
}

/// The integral channels of `core` as they are in those of the whole volume, up to a constant that
/// box sums do not see. The halo is below and above in the same buffer: the layouts start at the
/// core.
image::IntegralSet slab_set(const SlabNeeds& needs, std::span<const Volume<int16_t>> components,
                            const Slices& core, int32_t halo, const Context& context) {
  const Vec3i size = components[0].size();
  const int64_t plane = static_cast<int64_t>(size.x) * size.y;
  const Slices with_halo{std::max(0, core.begin - halo),
                         static_cast<int32_t>(std::min<int64_t>(size.z, int64_t{core.end} + halo))};
  std::vector<VolumeView<const int16_t>> views;
  for (const Volume<int16_t>& voxels : components) {
    views.push_back({voxels.data() + plane * with_halo.begin,
                     {size.x, size.y, with_halo.end - with_halo.begin}});
  }
  image::IntegralSet set =
      image::integral_set(views, needs.channels, needs.padding, needs.reach, context);
  set.size.z = core.end - core.begin;
  for (image::IntegralLayout& layout : set.layouts) {
    const int32_t below = (core.begin - with_halo.begin) >> layout.level;
    layout.offset += layout.linear_offset(0, 0, below);
    layout.voxels.z -= below;
    layout.stride_size.z -= below;
    layout.is_cut = below > 0;
  }
  return set;
}

}  // namespace

int32_t halo_of(std::span<const features::BoxFeature> features,
                std::span<const image::ChannelSpec> channels) {
  int32_t halo = 0;
  for (const features::BoxFeature& feature : features) {
    const int32_t reach = features::reach_along(feature).z;
    for (int b = 0; b < feature.box_count; ++b) {
      const image::ChannelSpec& channel = channels[feature.channels[static_cast<size_t>(b)]];
      halo = std::max(halo, (reach + image::radius_of(channel)) << channel.level);
    }
  }
  return round_up(halo, 1 << coarsest_level(channels));
}

SlabPlan plan_slabs(const SlabNeeds& needs, const SlabProblem& problem) {
  const int32_t align = 1 << coarsest_level(needs.channels);
  const int64_t slices = problem.size.z;
  SlabPlan plan;
  plan.halo = needs.halo;
  plan.core = problem.size.z;
  const bool queues = problem.on_gpu && needs.queue_bytes;
  do {
    plan.bytes = slab_bytes(needs, problem, slices, 0, plan.queue_items);
    if (plan.bytes <= problem.memory_bytes) return plan;
    if (queues) plan.queue_items /= 2;
  } while (queues && plan.queue_items >= kMinimumQueueItems);
  if (queues) plan.queue_items = kMinimumQueueItems;
  const auto bytes = [&](int64_t units) {
    return slab_bytes(needs, problem, std::min(slices, units * align), plan.halo, plan.queue_items);
  };
  if (bytes(1) > problem.memory_bytes) {
    throw MemoryError("the evaluation needs at least " + gibibytes(bytes(1)) + " (" +
                      std::to_string(bytes(1)) +
                      " bytes) beside the image and the result, in slabs of " +
                      std::to_string(align) + " slices with " + std::to_string(plan.halo) +
                      " on both sides, and may take " + gibibytes(problem.memory_bytes) +
                      "; allow more (--memory), or use a coarser or smaller image");
  }
  int64_t fits = 1, too_many = (slices + align - 1) / align + 1;
  while (too_many - fits > 1) {
    const int64_t middle = (fits + too_many) / 2;
    (bytes(middle) <= problem.memory_bytes ? fits : too_many) = middle;
  }
  const int64_t count = (slices + fits * align - 1) / (fits * align);
  plan.core = round_up((slices + count - 1) / count, align);
  plan.count = static_cast<int32_t>((slices + plan.core - 1) / plan.core);
  plan.bytes = bytes(plan.core / align);
  return plan;
}

int64_t default_memory_bytes(const Device& device) {
  const auto free = static_cast<int64_t>(free_memory_bytes(device));
  return device.is_cuda() ? free / 10 * 9 : free / 10 * 8;
}

SlabProblem slab_problem(const Vec3i& size, bool roi, int64_t memory_bytes, const Device& device) {
  if (memory_bytes <= 0) memory_bytes = default_memory_bytes(device);
  return {.size = size, .roi = roi, .on_gpu = device.is_cuda(), .memory_bytes = memory_bytes};
}

void for_slabs(const SlabNeeds& needs, std::span<const Volume<int16_t>> components,
               const SlabPlan& plan, const Volume<uint8_t>* roi, const Context& context,
               const SlabWork& work) {
  const Grid& whole = components[0].grid();
  if (plan.count == 1) {
    work(slab_set(needs, components, {0, whole.size.z}, 0, context), whole, 0, roi);
    return;
  }
  context.info("evaluating in " + std::to_string(plan.count) + " slabs of " +
               std::to_string(plan.core) + " slices with " + std::to_string(plan.halo) +
               " on both sides, " + gibibytes(plan.bytes) + " each");
  for (int32_t begin = 0; begin < whole.size.z; begin += plan.core) {
    context.throw_if_stopped("stopped between slabs");
    const Slices core{begin, std::min(begin + plan.core, whole.size.z)};
    const Grid grid = grid_of(whole, core);
    Volume<uint8_t> slab_roi(roi != nullptr ? grid : Grid{});
    if (roi != nullptr) copy_slices(*roi, begin, slab_roi, 0);
    work(slab_set(needs, components, core, plan.halo, context), grid, begin,
         roi != nullptr ? &slab_roi : nullptr);
  }
}

}  // namespace larch::voxels
