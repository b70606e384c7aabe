// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/slabs.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "larch/core/error.h"
#include "larch/image/integral.h"

namespace larch::pbt {
namespace {

/// What does not depend on the image.
constexpr int64_t kFixedBytes = int64_t{32} << 20;
/// Trees for the host and the GPU, at most: a table, records, and up to 32 taps a weak classifier.
constexpr int64_t kBytesPerTree = int64_t{64} << 10;
constexpr int64_t kBytesPerWeak = 1024;
constexpr int64_t kBytesPerNode = 64;
/// What all tiles that a GPU holds at a time keep beside lists.
constexpr int64_t kGpuTileBytes = int64_t{24} << 20;
/// The lists of a node, for this level and the next, of all tiles that a GPU holds at a time.
constexpr int64_t kGpuListBytes = int64_t{16} << 20;
/// The sum of an ensemble's trees, per voxel.
constexpr int64_t kGpuSumBytes = 8;

int32_t coarsest_level(std::span<const image::ChannelSpec> channels) {
  int32_t level = 0;
  for (const image::ChannelSpec& channel : channels) level = std::max(level, channel.level);
  return level;
}

int32_t round_up(int64_t value, int32_t step) {
  return static_cast<int32_t>((value + step - 1) / step * step);
}

std::string gibibytes(int64_t bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

/// What a slab of `core` slices takes on its device.
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
  const int64_t queues = needs.queue_depth > 0 ? queue_bytes(plane * core, needs.queue_depth,
                                                             needs.queue_nodes, queue_items)
                                               : 0;
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

int32_t slab_halo(const Model& model) {
  std::vector<features::BoxFeature> boxes;
  for (const features::HaarFeature& feature : model.features) {
    boxes.push_back(features::boxes_of(feature));
  }
  return halo_of(boxes, model.channels);
}

SlabNeeds needs_of(const Model& model) {
  SlabNeeds needs{model.channels, model.padding, model.reach_along(), slab_halo(model)};
  needs.model_bytes = kBytesPerTree * static_cast<int64_t>(model.trees()) +
                      kBytesPerWeak * static_cast<int64_t>(model.weaks.size()) +
                      kBytesPerNode * static_cast<int64_t>(model.nodes.size());
  needs.queue_depth = std::max(1, model.depth());
  needs.queue_nodes = static_cast<int64_t>(model.nodes.size());
  const int64_t lists =
      needs.queue_depth <= kTileLevels ? kGpuListBytes << (needs.queue_depth - 1) : 0;
  needs.gpu_bytes = kGpuTileBytes + lists;
  needs.gpu_voxel_bytes = model.trees() > 1 ? kGpuSumBytes : 0;
  needs.components = std::max<int64_t>(1, static_cast<int64_t>(model.components.size()));
  return needs;
}

SlabPlan plan_slabs(const SlabNeeds& needs, const SlabProblem& problem) {
  const int32_t align = 1 << coarsest_level(needs.channels);
  const int64_t slices = problem.size.z;
  SlabPlan plan;
  plan.halo = needs.halo;
  plan.core = problem.size.z;
  const bool queues = problem.on_gpu && needs.queue_depth > 0;
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

void for_slabs(const SlabNeeds& needs, std::span<const Volume<int16_t>> components,
               const SlabPlan& plan, const Context& context, const SlabWork& work) {
  const Grid& whole = components[0].grid();
  if (plan.count == 1) {
    work(slab_set(needs, components, {0, whole.size.z}, 0, context), whole, 0);
    return;
  }
  context.info("evaluating in " + std::to_string(plan.count) + " slabs of " +
               std::to_string(plan.core) + " slices with " + std::to_string(plan.halo) +
               " on both sides, " + gibibytes(plan.bytes) + " each");
  for (int32_t begin = 0; begin < whole.size.z; begin += plan.core) {
    context.throw_if_stopped("stopped between slabs");
    const Slices core{begin, std::min(begin + plan.core, whole.size.z)};
    work(slab_set(needs, components, core, plan.halo, context), grid_of(whole, core), begin);
  }
}

template <class T>
Volume<T> evaluate_slabs(const Model& model, std::span<const Volume<int16_t>> components,
                         const EvaluateConfig& config, const SlabPlan& plan, const Context& context,
                         const Volume<uint8_t>* roi) {
  Volume<T> out;
  const SlabWork work = [&](const image::IntegralSet& set, const Grid& grid, int32_t first) {
    const bool is_whole = grid.size == components[0].size();
    Volume<uint8_t> slab_roi;
    if (roi != nullptr && !is_whole) {
      slab_roi = Volume<uint8_t>(grid);
      copy_slices(*roi, first, slab_roi, 0);
    }
    Volume<T> slab = evaluate<T>(model, set, grid, config, context,
                                 slab_roi.empty() ? roi : &slab_roi, plan.queue_items);
    if (is_whole) {
      out = std::move(slab);
      return;
    }
    if (out.empty()) out = Volume<T>(components[0].grid());
    copy_slices(slab, 0, out, first);
  };
  for_slabs(needs_of(model), components, plan, context, work);
  return out;
}
template Volume<float> evaluate_slabs(const Model&, std::span<const Volume<int16_t>>,
                                      const EvaluateConfig&, const SlabPlan&, const Context&,
                                      const Volume<uint8_t>*);
template Volume<uint16_t> evaluate_slabs(const Model&, std::span<const Volume<int16_t>>,
                                         const EvaluateConfig&, const SlabPlan&, const Context&,
                                         const Volume<uint8_t>*);
template Volume<uint8_t> evaluate_slabs(const Model&, std::span<const Volume<int16_t>>,
                                        const EvaluateConfig&, const SlabPlan&, const Context&,
                                        const Volume<uint8_t>*);

template <class T>
Volume<T> evaluate_volume(const Model& model, std::span<const Volume<int16_t>> components,
                          const EvaluateConfig& config, int64_t memory_bytes,
                          const Context& context, const Volume<uint8_t>* roi) {
  SlabProblem problem{components[0].size()};
  problem.bytes_per_value = sizeof(T);
  problem.roi = roi != nullptr;
  problem.on_gpu = context.device.is_cuda();
  problem.memory_bytes = memory_bytes > 0 ? memory_bytes : default_memory_bytes(context.device);
  return evaluate_slabs<T>(model, components, config, plan_slabs(model, problem), context, roi);
}
template Volume<float> evaluate_volume(const Model&, std::span<const Volume<int16_t>>,
                                       const EvaluateConfig&, int64_t, const Context&,
                                       const Volume<uint8_t>*);
template Volume<uint16_t> evaluate_volume(const Model&, std::span<const Volume<int16_t>>,
                                          const EvaluateConfig&, int64_t, const Context&,
                                          const Volume<uint8_t>*);
template Volume<uint8_t> evaluate_volume(const Model&, std::span<const Volume<int16_t>>,
                                         const EvaluateConfig&, int64_t, const Context&,
                                         const Volume<uint8_t>*);

}  // namespace larch::pbt
