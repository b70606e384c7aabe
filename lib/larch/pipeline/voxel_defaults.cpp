// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/voxel_defaults.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/features/box.h"
#include "larch/pipeline/pbt_training.h"

namespace larch::pipeline {
namespace {

using pbt::ClassifierKind;

bool fits(pbt::TrainConfig config, ClassifierKind kind) {
  config.classifier = kind;
  try {
    check_keys(config);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The mean edge of a box, in voxels: that of the cube, or in a picture the square, of its volume.
double edge_of(const Vec3i& box, bool planar) {
  const double area = 1.0 * box.x * box.y;
  return planar ? std::sqrt(area) : std::cbrt(area * box.z);
}

/// Adds the edges of the boxes around the structures of a volume.
void add_structures(const pbt::TrainingVolume& volume, std::optional<int> background, bool planar,
                    std::vector<double>& edges) {
  struct Box {
    Vec3i lo, hi;
  };
  std::map<int32_t, Box> boxes;
  const LabelVolume& labels = volume.labels;
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (labels[i] == pbt::kUnlabelled || labels[i] == background) continue;
    const Vec3i at = labels.grid().voxel(i);
    Box& box = boxes.try_emplace(labels[i], Box{at, at}).first->second;
    for (int axis = 0; axis < 3; ++axis) {
      box.lo[axis] = std::min(box.lo[axis], at[axis]);
      box.hi[axis] = std::max(box.hi[axis], at[axis]);
    }
  }
  for (const auto& [label, box] : boxes) {
    edges.push_back(edge_of(box.hi - box.lo + Vec3i{1, 1, 1}, planar));
  }
}

/// A third of a structure, a quarter of an image: what lies farther away tells little of a voxel,
/// and nothing where it is outside of the image.
void fit_boxes(pbt::ForestConfig& forest, std::optional<int> background,
               const std::vector<pbt::TrainingVolume>& volumes, const Context& context) {
  const bool planar = std::all_of(volumes.begin(), volumes.end(),
                                  [](const auto& v) { return v.voxels.size().z == 1; });
  std::vector<double> images, structures;
  for (const pbt::TrainingVolume& volume : volumes) {
    images.push_back(edge_of(volume.voxels.size(), planar));
    add_structures(volume, background, planar, structures);
  }
  if (structures.empty()) return;  // the training says what is wrong
  const double image = median(images), structure = median(structures);
  const int edge = std::max(1, static_cast<int>(std::min(structure / 3, image / 4)));
  const features::BoxSpec most;
  if (!forest.reach) forest.reach = std::min(edge, most.reach);
  if (!forest.largest_box) forest.largest_box = std::min(edge, most.largest);
  char text[160];
  std::snprintf(text, sizeof text,
                "forest/reach %d and forest/largest_box %d, for structures of %.0f and images of "
                "%.0f voxels along an edge",
                *forest.reach, *forest.largest_box, structure, image);
  context.info(text);
}

}  // namespace

bool fits_forest(const pbt::TrainConfig& config) {
  return fits(config, ClassifierKind::kForest);
}

bool asks_labels(const pbt::TrainConfig& config) {
  return !config.classifier && config.labels.positive.empty() &&
         fits(config, ClassifierKind::kTree) && fits_forest(config);
}

void choose_classifier(pbt::TrainConfig& config, const std::set<int>& values,
                       const Context& context) {
  if (asks_labels(config)) {
    const auto is_structure = [&](int value) {
      return value != 0 && std::ranges::count(config.labels.ignore, value) == 0;
    };
    const bool many = std::ranges::count_if(values, is_structure) > 1;
    config.classifier = many ? ClassifierKind::kForest : ClassifierKind::kTree;
    context.info(many ? "the labels have several values, so that a decision forest learns each of "
                        "them; --classifier pbt learns them as one class"
                      : "the labels have one value beside the background, so that a boosting tree "
                        "learns it; --classifier decision-forest trains a forest");
  } else if (!config.classifier) {
    config.classifier =
        fits(config, ClassifierKind::kTree) ? ClassifierKind::kTree : ClassifierKind::kForest;
  }
  const bool is_forest = config.classifier == ClassifierKind::kForest;
  if (!config.labels.border_voxels) config.labels.border_voxels = is_forest ? 0 : 1;
}

void take_names(const std::vector<DatasetLabel>& labels, const std::set<int>& seen,
                pbt::LabelConfig& config, const Context& context) {
  const bool has_names = !config.names.empty();
  const auto take_background = [&](int value) {
    if (config.background || !seen.contains(value) ||
        std::ranges::count(config.ignore, value) > 0) {
      return;
    }
    config.background = value;
    context.info("label " + std::to_string(value) + " is the background");
  };
  for (const auto& [name, values] : labels) {
    if (values.size() != 1) continue;
    if (!has_names) config.names.push_back({values[0], name});
    if (name == kBackgroundName) take_background(values[0]);
  }
  const auto is_zero = [](const pbt::ClassName& n) { return n.value == 0; };
  if (std::ranges::none_of(config.names, is_zero)) take_background(0);
}

void fit_to_volumes(pbt::TrainConfig& config, const std::vector<pbt::TrainingVolume>& volumes,
                    const Context& context) {
  if (!config.validation.fraction) config.validation.fraction = volumes.size() < 20 ? 0 : 0.15;
  if (config.validation.fraction == 0) {
    config::require_default(config.validation, "validation.", "--validation.fraction above 0",
                            {"prune", "patience"});
  }
  pbt::ForestConfig& forest = config.forest;
  const bool is_forest = config.classifier == ClassifierKind::kForest;
  if (is_forest && !forest.bootstrap) forest.bootstrap = false;
  const bool has_boxes = is_forest && forest.pool == pbt::ForestPool::kBoxes;
  if (has_boxes && (!forest.reach || !forest.largest_box)) {
    const bool two_classes = !config.labels.positive.empty();
    fit_boxes(forest, two_classes ? 0 : config.labels.background, volumes, context);
  }
  config = with_constants(std::move(config));
}

pbt::TrainConfig with_constants(pbt::TrainConfig config) {
  const features::BoxSpec boxes;
  config.classifier = config.classifier.value_or(ClassifierKind::kTree);
  config.labels.border_voxels = config.labels.border_voxels.value_or(1);
  config.validation.fraction = config.validation.fraction.value_or(0);
  config.forest.reach = config.forest.reach.value_or(boxes.reach);
  config.forest.largest_box = config.forest.largest_box.value_or(boxes.largest);
  config.forest.bootstrap = config.forest.bootstrap.value_or(true);
  return config;
}

}  // namespace larch::pipeline
