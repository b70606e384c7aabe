// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/label_scores.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "larch/core/error.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/metrics/overlap.h"
#include "larch/metrics/surface_distance.h"

namespace larch::metrics {
namespace {

void require_memory(const std::string& structure, const Volume<uint8_t>& prediction,
                    const Volume<uint8_t>& reference, int64_t most, const Context& context) {
  if (most == INT64_MAX) return;
  const mesh::SurfaceSize a = mesh::surface_size(prediction, context);
  const mesh::SurfaceSize b = mesh::surface_size(reference, context);
  const int64_t bytes = surface_distance_bytes(a, b, prediction.grid().size, context.threads);
  if (bytes <= most) return;
  throw MemoryError("the surfaces of structure '" + structure + "', " + describe(a) + " and " +
                    describe(b) + ", take up to " + std::to_string(bytes) +
                    " bytes, beside the label maps " + std::to_string(std::max<int64_t>(0, most)) +
                    " are allowed; allow more memory, or --surfaces=false");
}

/// A structure in two label maps, as masks of a box that holds both.
struct Structure {
  Vec3i first{};  ///< of the box
  Volume<uint8_t> prediction{}, reference{};
};

/// The voxels from `low` to `high` that have one of `values`, ascending, where `truth` has none of
/// `ignore`.
Volume<uint8_t> mask_in_box(const LabelVolume& labels, std::span<const int32_t> values,
                            const LabelVolume& truth, const std::vector<int>& ignore,
                            const Vec3i& low, const Vec3i& high) {
  Grid grid = labels.grid();
  grid.size = high - low + Vec3i{1, 1, 1};
  Volume<uint8_t> mask = Volume<uint8_t>::unfilled(grid);
  const auto has = [&](int32_t label) {
    return std::binary_search(values.begin(), values.end(), label);
  };
  int32_t last = 0;
  bool is_in = has(last);
  for (int64_t begin = 0; begin < mask.voxels(); begin += grid.size.x) {
    const int64_t from = labels.grid().linear(low + grid.voxel(begin));
    for (int64_t x = 0; x < grid.size.x; ++x) {
      const int64_t i = from + x;
      if (labels[i] != last) is_in = has(last = labels[i]);
      mask[begin + x] = is_in && std::ranges::find(ignore, truth[i]) == ignore.end();
    }
  }
  return mask;
}

StructureScores scores_of(const std::string& name, const Overlap& o, const Structure& structure,
                          const LabelScoreConfig& config, int64_t surface_bytes,
                          const Context& context) {
  StructureScores out{name,
                      {{"dice", o.dice},
                       {"jaccard", o.jaccard},
                       {"prediction_mm3", o.prediction_mm3},
                       {"reference_mm3", o.reference_mm3},
                       {"volume_difference_mm3", o.volume_difference_mm3},
                       {"relative_volume_difference", o.relative_volume_difference}}};
  if (config.surfaces) {
    const auto& [first, prediction, reference] = structure;
    require_memory(name, prediction, reference, surface_bytes, context);
    const std::vector<Score> distances =
        named_scores(surface_distance(mesh::marching_cubes(prediction, context, first),
                                      mesh::marching_cubes(reference, context, first), context));
    out.scores.insert(out.scores.end(), distances.begin(), distances.end());
  }
  out.scores.push_back({"total_correct_fraction", o.total_correct_fraction});
  return out;
}

}  // namespace

std::vector<StructureScores> score_labels(const LabelVolume& prediction,
                                          const LabelVolume& reference,
                                          const LabelScoreConfig& config, const Context& context,
                                          int64_t surface_bytes) {
  if (!config.prediction_labels.empty() && !config.merge) {
    throw UsageError("prediction_labels needs merge: without it labels are compared one by one");
  }
  const LabelCounts counts = count_labels(prediction, reference, config.ignore);
  std::vector<int32_t> labels(config.labels.begin(), config.labels.end());
  if (labels.empty()) {
    for (const LabelCount& one : counts.labels) {
      if (one.label != 0) labels.push_back(one.label);
    }
  }
  const double voxel_mm3 = prediction.grid().voxel_volume_mm3();
  const auto masks = [&](std::span<const int32_t> in_prediction,
                         std::span<const int32_t> in_reference, const LabelCount& box) {
    if (box.high.x < 0) return Structure{};
    return Structure{
        box.low,
        mask_in_box(prediction, in_prediction, reference, config.ignore, box.low, box.high),
        mask_in_box(reference, in_reference, reference, config.ignore, box.low, box.high)};
  };
  std::vector<StructureScores> out;
  for (const int32_t& label : labels) {
    if (config.merge) break;
    const auto at = std::ranges::lower_bound(counts.labels, label, {}, &LabelCount::label);
    const bool is_there = at != counts.labels.end() && at->label == label;
    const LabelCount one = is_there ? *at : LabelCount{};
    const std::span<const int32_t> value(&label, 1);
    out.push_back(scores_of(
        std::to_string(label),
        overlap(one.prediction, one.reference, one.common, counts.voxels, voxel_mm3),
        config.surfaces ? masks(value, value, one) : Structure{}, config, surface_bytes, context));
  }
  std::vector<int32_t> in_prediction(config.prediction_labels.begin(),
                                     config.prediction_labels.end());
  if (in_prediction.empty()) in_prediction = labels;
  std::sort(labels.begin(), labels.end());
  std::sort(in_prediction.begin(), in_prediction.end());
  LabelCount all;
  for (const LabelCount& one : counts.labels) {
    if (std::ranges::binary_search(labels, one.label) ||
        std::ranges::binary_search(in_prediction, one.label)) {
      all.include(one.low, one.high);
    }
  }
  const Structure whole = masks(in_prediction, labels, all);
  const Overlap in_box = overlap(whole.prediction, whole.reference);
  const Overlap o = overlap(in_box.prediction_voxels, in_box.reference_voxels, in_box.common_voxels,
                            counts.voxels, voxel_mm3);
  out.push_back(scores_of("union", o, whole, config, surface_bytes, context));
  return out;
}

}  // namespace larch::metrics
