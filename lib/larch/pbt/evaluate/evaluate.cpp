// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/evaluate.h"

#include <algorithm>
#include <string>

#include "larch/core/dispatch.h"

namespace larch::pbt {
namespace {

/// Trees as they are opened and for an image, on the host and a GPU, at most: a table, records, and
/// up to 32 taps a weak classifier.
constexpr int64_t kBytesPerTree = int64_t{64} << 10;
constexpr int64_t kBytesPerWeak = 1024;
constexpr int64_t kBytesPerNode = 64;
/// Says what all tiles that a GPU holds at a time keep beside lists.
constexpr int64_t kGpuTileBytes = int64_t{24} << 20;
/// The lists of a node, for this level and the next, of all tiles that a GPU holds at a time.
constexpr int64_t kGpuListBytes = int64_t{16} << 20;
/// The sum of an ensemble's trees, per voxel.
constexpr int64_t kGpuSumBytes = 8;

constexpr Dispatch<void(const EvaluateJob&, const Context&)> kEvaluate{
    "pbt::evaluate", cpu::evaluate, LARCH_CUDA_FN(cuda::evaluate)};

}  // namespace

Volume<float> evaluate(const ResidentModel& resident, const image::IntegralSet& set,
                       const Grid& grid, const EvaluateConfig& config, const Context& context,
                       const Volume<uint8_t>* roi, int64_t queue_items) {
  const Model& model = resident.model;
  // The work goes to the stream of the context, which is one of its device.
  if (!(set.data.device() == context.device && resident.device == context.device)) {
    throw UsageError("pbt::evaluate: the model is on " + to_string(resident.device) +
                     ", the image on " + to_string(set.data.device()) + ", the context on " +
                     to_string(context.device));
  }
  if (set.size != grid.size) throw UsageError("pbt::evaluate: image and grid differ in size");
  if (set.layouts.size() != model.channels.size()) {
    throw UsageError("pbt::evaluate: the image has other channels than the model");
  }
  features::check_taps(resident.boxes, set.layouts);
  double share = 1;
  if (roi != nullptr) {
    const auto wanted = std::count_if(roi->begin(), roi->end(), [](uint8_t v) { return v != 0; });
    share = static_cast<double>(wanted) / static_cast<double>(std::max<int64_t>(1, roi->voxels()));
  }
  const Walk walk = chosen_walk(config.walk, model.depth(), share, context.device);
  for (const auto& entry : enum_names(static_cast<Walk*>(nullptr))) {
    if (entry.value == walk)
      context.debug("evaluation by the " + std::string(entry.name) + " walk");
  }
  const tree::Thresholds thresholds = tree::thresholds_of(
      model, {config.e1 > 0 ? config.e1 : -1, config.hard, config.e2.value_or(-1)});
  const uint8_t* inside = roi != nullptr ? roi->data() : nullptr;
  Volume<float> out(grid);
  kEvaluate(context.device,
            EvaluateJob{set.size, set.layouts, set.data.data(), resident.plan.get(), walk,
                        thresholds, inside, out.data(), queue_items},
            context);
  return out;
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
  const int depth = std::max(1, model.depth());
  const auto nodes = static_cast<int64_t>(model.nodes.size());
  needs.queue_bytes = [depth, nodes](int64_t voxels, int64_t queue_items) {
    return queue_bytes(voxels, depth, nodes, queue_items);
  };
  const int64_t lists = depth <= kTileLevels ? kGpuListBytes << (depth - 1) : 0;
  needs.gpu_bytes = kGpuTileBytes + lists;
  needs.gpu_voxel_bytes = model.trees() > 1 ? kGpuSumBytes : 0;
  needs.components = std::max<int64_t>(1, static_cast<int64_t>(model.components.size()));
  return needs;
}

Volume<float> evaluate_slabs(const ResidentModel& resident,
                             std::span<const Volume<int16_t>> components,
                             const EvaluateConfig& config, const SlabPlan& plan,
                             const Context& context, const Volume<uint8_t>* roi) {
  Volume<float> out;
  const SlabWork work = [&](const image::IntegralSet& set, const Grid& grid, int32_t first,
                            const Volume<uint8_t>* slab_roi) {
    Volume<float> slab = evaluate(resident, set, grid, config, context, slab_roi, plan.queue_items);
    if (grid.size == components[0].size()) {
      out = std::move(slab);
      return;
    }
    if (out.empty()) out = Volume<float>(components[0].grid());
    copy_slices(slab, 0, out, first);
  };
  for_slabs(needs_of(resident.model), components, plan, roi, context, work);
  return out;
}

Volume<float> evaluate_volume(const ResidentModel& resident,
                              std::span<const Volume<int16_t>> components,
                              const EvaluateConfig& config, int64_t memory_bytes,
                              const Context& context, const Volume<uint8_t>* roi) {
  const SlabProblem problem =
      slab_problem(components[0].size(), roi != nullptr, memory_bytes, context.device);
  return evaluate_slabs(resident, components, config, plan_slabs(resident.model, problem), context,
                        roi);
}

}  // namespace larch::pbt
