// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/forest/evaluate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/features/tap.h"

namespace larch::forest {
namespace {

constexpr Dispatch<void(const EvaluateJob&, const Context&)> kEvaluate{
    "forest::evaluate", cpu::evaluate, LARCH_CUDA_FN(cuda::evaluate)};

/// Downloads volumes of a slab to their places in those of the whole image.
template <class T>
void take(const Buffer<T>& buffer, const Grid& grid, int32_t first, const Grid& whole,
          std::vector<Volume<T>>& volumes) {
  const auto voxels = static_cast<size_t>(grid.voxels());
  volumes.resize(buffer.size() / voxels);
  for (size_t k = 0; k < volumes.size(); ++k) {
    if (volumes[k].empty()) volumes[k] = Volume<T>::unfilled(whole);
    T* slab = volumes[k].data() + int64_t{first} * grid.size.x * grid.size.y;
    buffer.download({slab, voxels}, k * voxels);
  }
}

}  // namespace

ResidentModel::ResidentModel(Model given, const Device& device) : model(std::move(given)) {
  std::vector<features::Tap> corners;
  std::vector<tree::ForestNode> nodes = model.nodes;
  for (tree::ForestNode& node : nodes) {
    if (node.is_leaf()) continue;
    const std::vector<features::Tap> own = features::corner_taps(model.features[node.feature]);
    node.feature = static_cast<uint32_t>(corners.size());
    node.leaf = static_cast<int32_t>(own.size());
    corners.insert(corners.end(), own.begin(), own.end());
  }
  features::widen(boxes, corners);
  std::vector<int32_t> of_classes;
  for (const ForestClass& c : model.class_table) of_classes.push_back(c.value);
  resident = tree::make_resident(model, nodes, device);
  taps = Buffer<features::Tap>(device, corners);
  values = Buffer<int32_t>(device, of_classes);
  wait_for(device);
}

Results evaluate(const ResidentModel& forest, const image::IntegralSet& set, const Wanted& wanted,
                 const Context& context, const Volume<uint8_t>* roi) {
  const Device& device = context.device;
  if (!(set.data.device() == device && forest.values.device() == device)) {
    throw UsageError("forest::evaluate: the model is on " + to_string(forest.values.device()) +
                     ", the image on " + to_string(set.data.device()) + ", the context on " +
                     to_string(device));
  }
  features::check_taps(forest.boxes, set.layouts);
  const tree::ForestView& view = forest.resident.view;
  const Buffer<image::IntegralLayout> layouts(device, set.layouts);
  Buffer<tree::ForestNode> nodes(device, forest.resident.nodes.size());
  Buffer<features::LinearTap> taps(device, forest.taps.size());
  EvaluateJob job{view,           view.nodes,      forest.taps.data(),
                  nodes.data(),   taps.data(),     static_cast<int64_t>(nodes.size()),
                  layouts.data(), set.data.data(), forest.values.data(),
                  set.size};
  job.forest.nodes = nodes.data();
  const auto voxels = static_cast<size_t>(job.voxels());
  Buffer<uint8_t> region;
  if (roi != nullptr) region = Buffer<uint8_t>(device, {roi->data(), voxels});
  if (wanted.leaves) job.leaf_trees = std::min(view.trees, wanted.leaf_trees);
  Results out{Buffer<int32_t>(device, voxels * job.leaf_trees),
              Buffer<float>(device, wanted.distribution ? voxels * view.classes : 0),
              Buffer<int32_t>(device, wanted.labels ? voxels : 0)};
  job.roi = region.data();
  job.leaves = out.leaves.data();
  job.distribution = out.distribution.data();
  job.labels = out.labels.data();
  kEvaluate(device, job, context);
  return out;
}

voxels::SlabPlan plan_slabs(const Model& model, const Vec3i& size, const Wanted& wanted, bool roi,
                            int64_t memory_bytes, const Device& device) {
  voxels::SlabProblem problem = voxels::slab_problem(size, roi, memory_bytes, device);
  const int trees = static_cast<int>(std::min<size_t>(model.trees(), wanted.leaf_trees));
  problem.bytes_per_value = (wanted.labels ? 4 : 0) + (wanted.leaves ? 4 * trees : 0) +
                            (wanted.distribution ? 4 * static_cast<int>(model.classes) : 0);
  return voxels::plan_slabs(needs_of(model), problem);
}

Maps evaluate_volume(const ResidentModel& resident, std::span<const Volume<int16_t>> components,
                     const Wanted& wanted, int64_t memory_bytes, const Context& context,
                     const Volume<uint8_t>* roi) {
  const Model& model = resident.model;
  const Grid& whole = components[0].grid();
  const voxels::SlabPlan plan =
      plan_slabs(model, whole.size, wanted, roi != nullptr, memory_bytes, context.device);
  Maps maps;
  const voxels::SlabWork work = [&](const image::IntegralSet& set, const Grid& grid, int32_t first,
                                    const Volume<uint8_t>* slab_roi) {
    const Results slab = evaluate(resident, set, wanted, context, slab_roi);
    take(slab.leaves, grid, first, whole, maps.leaves);
    take(slab.distribution, grid, first, whole, maps.distribution);
    take(slab.labels, grid, first, whole, maps.labels);
  };
  voxels::for_slabs(needs_of(model), components, plan, roi, context, work);
  return maps;
}

size_t likeliest_structure(std::span<const Volume<float>> distribution, int32_t background,
                           int64_t voxel) {
  const auto around = static_cast<size_t>(background);
  size_t likeliest = around;
  for (size_t c = 0; c < distribution.size(); ++c) {
    if (c == around) continue;
    if (likeliest == around || distribution[c][voxel] > distribution[likeliest][voxel]) {
      likeliest = c;
    }
  }
  return likeliest;
}

void cpu::evaluate(const EvaluateJob& job, const Context& context) {
  parallel_for_each(context.threads, job.node_count, 4096, [&](int64_t n) { job.place(n); });
  constexpr int kChunk = 64;  // voxels of a row that are led through a tree together
  parallel_for(
      context.threads, int64_t{job.size.y} * job.size.z, 1, [&](int64_t begin, int64_t end) {
        std::vector<uint32_t> leaves(size_t{kChunk} * job.forest.trees);
        for (int64_t r = begin; r < end; ++r) {
          const auto y = static_cast<int>(r % job.size.y), z = static_cast<int>(r / job.size.y);
          for (int x = 0; x < job.size.x; x += kChunk) {
            const auto count = static_cast<size_t>(std::min(kChunk, job.size.x - x));
            for (uint32_t t = 0; t < job.forest.trees; ++t) {
              for (size_t k = 0; k < count; ++k) {
                leaves[t * kChunk + k] = job.leaf(t, {x + static_cast<int>(k), y, z});
              }
            }
            for (size_t k = 0; k < count; ++k) {
              job.store(r * job.size.x + x + static_cast<int64_t>(k),
                        [&](uint32_t t) { return leaves[t * kChunk + k]; });
            }
          }
        }
      });
}

}  // namespace larch::forest
