// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/label_scores.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

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

StructureScores scores_of(const std::string& structure, const Volume<uint8_t>& prediction,
                          const Volume<uint8_t>& reference, bool surfaces, int64_t surface_bytes,
                          const Context& context) {
  const Overlap o = overlap(prediction, reference);
  StructureScores out{structure,
                      {{"dice", o.dice},
                       {"jaccard", o.jaccard},
                       {"prediction_mm3", o.prediction_mm3},
                       {"reference_mm3", o.reference_mm3},
                       {"volume_difference_mm3", o.volume_difference_mm3},
                       {"relative_volume_difference", o.relative_volume_difference}}};
  if (surfaces) {
    require_memory(structure, prediction, reference, surface_bytes, context);
    const std::vector<Score> distances =
        named_scores(surface_distance(prediction, reference, context));
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
  std::vector<int32_t> labels(config.labels.begin(), config.labels.end());
  if (labels.empty()) {
    const auto a = labels_in(prediction), b = labels_in(reference);
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(labels));
  }
  std::vector<StructureScores> out;
  if (!config.merge) {
    for (const int32_t label : labels) {
      const std::span<const int32_t> one(&label, 1);
      out.push_back(scores_of(std::to_string(label), mask_of(prediction, one),
                              mask_of(reference, one), config.surfaces, surface_bytes, context));
    }
  }
  std::vector<int32_t> in_prediction(config.prediction_labels.begin(),
                                     config.prediction_labels.end());
  if (in_prediction.empty()) in_prediction = labels;
  out.push_back(scores_of("union", mask_of(prediction, in_prediction), mask_of(reference, labels),
                          config.surfaces, surface_bytes, context));
  return out;
}

}  // namespace larch::metrics
