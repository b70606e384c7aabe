// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "larch/core/error.h"
#include "larch/features/linear/linear_source.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pbt/train/train.h"
#include "larch/voxels/pool.h"

namespace larch::hdn {
namespace {

using voxels::VoxelClass;

constexpr auto kNegative = static_cast<uint8_t>(VoxelClass::kNegative);
constexpr auto kPositive = static_cast<uint8_t>(VoxelClass::kPositive);
constexpr auto kIgnored = static_cast<uint8_t>(VoxelClass::kIgnored);

/// Returns the largest offset of a node from the centre along an axis.
double offset_of(const Vec3i& node, const Vec3d& centre_voxel) {
  double most = 0;
  for (int axis = 0; axis < 3; ++axis) {
    most = std::max(most, std::abs(node[axis] - centre_voxel[axis]));
  }
  return most;
}

/// A node within one voxel is the structure, beyond two it is something else.
uint8_t class_of(double offset) {
  return offset <= 1 ? kPositive : offset > 2 ? kNegative : kIgnored;
}

/// Returns the classes of the nodes of a case. Nodes that are not searched are ignored, with two
/// exceptions: the nodes at the truth count where no such node is searched, and the nodes about it
/// count where nothing else is searched.
Volume<uint8_t> classes_of(const StageTask& task, size_t c, StageReport& report) {
  const TrainingCase& training = task.cases[c];
  const Volume<int16_t>& voxels = training.levels[static_cast<size_t>(task.stage.level)];
  const CaseSearch& search = task.searches[c];
  const image::LevelScale scale = task.model.scale(task.stage.level);
  const std::optional<Pose>& truth = task.truth(c);
  Vec3d centre{-1e6, -1e6, -1e6};
  if (truth) {
    for (int axis = 0; axis < 3; ++axis) centre[axis] = scale.voxel(truth->centre_mm[axis]);
  }
  Volume<uint8_t> classes(voxels.grid(), kIgnored);
  if (search.search != SearchKind::kRoot && (!truth || search.seeds.empty())) return classes;
  ResidentDetector nothing;
  nothing.stage = task.stage;
  LevelViews level;
  level.size = voxels.size();
  level.scale = scale;
  level.extent = training.extent;
  HostSegment host;
  make_segment(search, nothing, level, host);
  size_t positives = 0, negatives = 0;
  for (uint64_t number = 0; number < host.segment.slots; ++number) {
    const Node node = node_of(host.segment, level, number);
    if (node.seed < 0) continue;
    const uint8_t kind = class_of(offset_of(node.voxel, centre));
    classes[voxels.grid().linear(node.voxel)] = kind;
    positives += kind == kPositive ? 1 : 0;
    negatives += kind == kNegative ? 1 : 0;
  }
  if ((positives > 0 && negatives > 0) || !truth) return classes;
  if (positives == 0) ++report.added_truth;
  for (int64_t i = 0; i < classes.voxels(); ++i) {
    const double offset = offset_of(voxels.grid().voxel(i), centre);
    const uint8_t kind = class_of(offset);
    const bool is_added = kind == kPositive   ? positives == 0
                          : kind == kNegative ? negatives == 0 && offset <= kAroundVoxels
                                              : false;
    if (is_added) classes[i] = kind;
  }
  return classes;
}

/// Returns the settings of pbt::train for a detector.
voxels::TrainConfig voxel_config(const StageTask& task) {
  voxels::TrainConfig config = task.shared;
  config.samples.positives_per_volume = 27;
  config.samples.negatives_per_volume = task.config.negatives_per_volume;
  config.validation = {};
  // Samples stand for all nodes, of which one in a hundred thousand may be the structure.
  config.tree.purity = 1;
  // A search around seeds is so small that all of it is drawn.
  const bool is_root = !task.searches.empty() && task.searches[0].search == SearchKind::kRoot;
  config.mining.enabled = config.mining.enabled && is_root;
  return config;
}

Detector detector_of(const StageTask& task, pbt::Model model) {
  Detector detector;
  detector.stage = task.stage;
  detector.haar = std::move(model.features);
  detector.trees = std::move(static_cast<tree::Ensemble&>(model));
  detector.trees.history.clear();
  return detector;
}

/// Forests, of whose folds all have the same samples and ranges of features.
TrainedStage train_forests(const StageTask& task,
                           const std::vector<voxels::TrainingVolume>& volumes,
                           const voxels::TrainConfig& config, const Context& context) {
  std::vector<size_t> all(volumes.size());
  std::iota(all.begin(), all.end(), size_t{0});
  voxels::SampleSet samples =
      voxels::draw_samples(volumes, all, config.samples, context.seed, context.threads);
  const auto pool = voxels::make_pool(config, task.model.channels, context.seed);
  voxels::MemoryNeeds needs = voxels::needs_of(config, samples.size(), task.model.channels.size());
  needs.work = config.memory_bytes / 2;  // as grow_forest takes it
  voxels::TrainingImages images =
      voxels::load_training_images(volumes, task.model.channels, task.model.padding,
                                   features::reach_along(pool), context, needs);
  const features::SamplePlaces places = voxels::place_samples(samples, images);
  const features::LinearColumns columns =
      features::make_haar_columns(pool, images.common_layouts(), 0, context);
  const features::LinearSource source(columns, places);
  const std::vector<learning::CodeMap> maps =
      source.range(voxels::range_samples(samples, samples.size(), context), context);
  return train_folds(task, [&](size_t fold) {
    StageForest grown = grow_forest(task, {source, samples, maps}, fold, context);
    Detector detector{task.stage, {}, {}, {}, std::move(grown.forest)};
    for (const uint32_t column : grown.columns) detector.haar.push_back(pool[column]);
    return detector;
  });
}

}  // namespace

TrainedStage train_position(const StageTask& task, StageReport& report, const Context& context) {
  std::vector<voxels::TrainingVolume> volumes(task.cases.size());
  for (size_t c = 0; c < volumes.size(); ++c) {
    volumes[c].name = task.cases[c].name;
    volumes[c].voxels = task.cases[c].levels[static_cast<size_t>(task.stage.level)];
    volumes[c].classes = classes_of(task, c, report);
    const auto& classes = volumes[c].classes;
    report.positives += static_cast<size_t>(std::count(classes.begin(), classes.end(), kPositive));
    report.negatives +=
        std::min(static_cast<size_t>(std::count(classes.begin(), classes.end(), kNegative)),
                 static_cast<size_t>(task.config.negatives_per_volume));
    if (task.truth(c)) ++report.cases;
  }
  const voxels::TrainConfig config = voxel_config(task);
  if (config.classifier == voxels::ClassifierKind::kForest) {
    return train_forests(task, volumes, config, context);
  }
  Context quiet = context;
  quiet.log_sink = {};
  quiet.progress_sink = {};
  const auto train = [&](const std::vector<voxels::TrainingVolume>& learned) {
    return detector_of(task,
                       pbt::train_trees(learned, task.model.space, config, {}, nullptr, quiet));
  };
  TrainedStage trained;
  trained.full = train(volumes);
  const auto folds = static_cast<size_t>(task.config.folds);
  for (size_t fold = 0; folds > 1 && fold < folds; ++fold) {
    std::vector<voxels::TrainingVolume> learned;
    for (size_t c = 0; c < volumes.size(); ++c) {
      if (task.is_learned(c, fold)) learned.push_back(volumes[c]);
    }
    trained.folds.push_back(train(learned));
  }
  return trained;
}

}  // namespace larch::hdn
