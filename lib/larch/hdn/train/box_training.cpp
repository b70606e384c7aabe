// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/features/steerable/steerable.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/learning/lowest_hash.h"
#include "larch/tree/train/column_trees.h"
#include "larch/voxels/samples.h"

namespace larch::hdn {
namespace {

using features::SteerableFrame;

constexpr uint64_t kPositiveStream = 0x706f73, kNegativeStream = 0x6e6567, kHardStream = 0x68617264,
                   kJitterStream = 0x6a6974;

/// The boxes that are learned from.
struct Boxes {
  tree::Samples samples;
  std::vector<SteerableFrame> frames;
  std::vector<uint32_t> case_of;
  std::vector<size_t> first;  ///< of each case; one more at the end

  size_t size() const { return frames.size(); }
};

/// Returns a hypothesis of a case by its number, moved by up to the jitter.
Pose jittered(const StageTask& task, size_t c, uint64_t number, Pose pose, uint64_t seed) {
  if (task.stage.kind == StageKind::kPosition) return pose;
  const double most_mm = task.config.jitter_voxels * task.spacing_mm();
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t index = (number * 3 + static_cast<uint64_t>(axis)) << 20 | c;
    pose.centre_mm[axis] += (2 * hash_unit(seed, kJitterStream, index) - 1) * most_mm;
  }
  return pose;
}

void add_box(const StageTask& task, size_t c, uint64_t number, const Pose& pose, bool positive,
             uint64_t seed, Boxes& boxes) {
  boxes.frames.push_back(features::frame_of(jittered(task, c, number, pose, seed),
                                            task.model.scale(task.stage.level)));
  boxes.case_of.push_back(static_cast<uint32_t>(c));
  boxes.samples.add(static_cast<uint64_t>(c) << 40 | number, positive, uint64_t{1} << 32);
}

/// The box of the truth at the voxels around its centre, where no hypothesis is near it; what the
/// stage does not know yet is as it is expected.
void add_truth(const StageTask& task, size_t c, const Pose& truth, uint64_t seed, Boxes& boxes) {
  const image::LevelScale scale = task.model.scale(task.stage.level);
  const CaseSearch& search = task.searches[c];
  Pose box = truth;
  if (task.stage.kind == StageKind::kOrientation) box.edges_mm = search.candidates[0].pose.edges_mm;
  if (task.stage.kind == StageKind::kPosition) box = search.seeds[0].pose;
  for (uint64_t k = 0; k < 8; ++k) {
    for (int axis = 0; axis < 3; ++axis) {
      const double low = std::floor(scale.voxel(truth.centre_mm[axis]));
      box.centre_mm[axis] = scale.mm(low + static_cast<double>(k >> axis & 1));
    }
    add_box(task, c, kMaximumSlots + k, box, true, seed, boxes);
  }
}

/// The hypotheses of a case by what they are, each with a hash.
struct Drawn {
  std::vector<std::pair<uint64_t, uint64_t>> positive, negative, hard;
};

/// Half of the negatives are of the first eighth of the hypotheses, which are those of the best
/// candidates or of the first seed.
Drawn classify(const StageTask& task, const StageView& view, const Segment& segment, size_t c,
               uint64_t seed) {
  Drawn drawn;
  for (uint64_t number = 0; number < segment.slots; ++number) {
    Pose pose;
    if (!pose_of_slot(view, segment, number, pose)) continue;
    const int kind = truth_of(task.stage.kind, pose, *task.truth(c), task.spacing_mm(), task.rule);
    const uint64_t id = static_cast<uint64_t>(c) << 40 | number;
    if (kind > 0) drawn.positive.emplace_back(hash64(seed, kPositiveStream, id), number);
    if (kind >= 0) continue;
    drawn.negative.emplace_back(hash64(seed, kNegativeStream, id), number);
    if (number < std::max(segment.slots / 8, 1U)) {
      drawn.hard.emplace_back(hash64(seed, kHardStream, id), number);
    }
  }
  return drawn;
}

/// Adds positive and negative hypotheses of a case, drawn by hash.
void add_case(const StageTask& task, const ResidentDetector& hypotheses, size_t c, uint64_t seed,
              StageReport& report, Boxes& boxes) {
  const CaseSearch& search = task.searches[c];
  if (!task.truth(c) || search.is_empty(task.stage.kind)) return;
  ++report.cases;
  StageView view;
  view.kind = task.stage.kind;
  view.level.size = task.cases[c].levels[static_cast<size_t>(task.stage.level)].size();
  view.level.scale = task.model.scale(task.stage.level);
  view.level.extent = task.cases[c].extent;
  HostSegment host;
  make_segment(search, hypotheses, view.level, host);
  Drawn drawn = classify(task, view, host.segment, c, seed);
  const auto most = static_cast<size_t>(task.config.negatives_per_volume);
  const std::vector<uint64_t> taken = learning::lowest_of(
      std::move(drawn.positive), static_cast<size_t>(task.config.positives_per_volume));
  std::vector<uint64_t> others = learning::lowest_of(std::move(drawn.hard), most / 2);
  for (const uint64_t n : learning::lowest_of(std::move(drawn.negative), most - others.size())) {
    others.push_back(n);
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  const auto add = [&](const std::vector<uint64_t>& numbers, bool is_positive) {
    for (const uint64_t number : numbers) {
      Pose pose;
      pose_of_slot(view, host.segment, number, pose);
      add_box(task, c, number, pose, is_positive, seed, boxes);
    }
  };
  add(taken, true);
  if (taken.empty()) {
    ++report.added_truth;
    add_truth(task, c, *task.truth(c), seed, boxes);
  }
  add(others, false);
}

Boxes draw_boxes(const StageTask& task, uint64_t seed, StageReport& report) {
  ResidentDetector hypotheses;
  hypotheses.stage = task.stage;
  hypotheses.rotations = Buffer<Quaternion>(Device::cpu(), task.stage.rotations);
  hypotheses.log_scales = Buffer<Vec3d>(Device::cpu(), task.stage.log_scales);
  Boxes boxes;
  for (size_t c = 0; c < task.cases.size(); ++c) {
    boxes.first.push_back(boxes.size());
    add_case(task, hypotheses, c, seed, report, boxes);
  }
  boxes.first.push_back(boxes.size());
  report.positives = static_cast<size_t>(
      std::accumulate(boxes.samples.positive.begin(), boxes.samples.positive.end(), size_t{0}));
  report.negatives = boxes.size() - report.positives;
  return boxes;
}

/// Returns the boosting trees of one fold.
Detector grow_fold(const StageTask& task, const Boxes& boxes, const tree::ColumnTask& columns,
                   const std::vector<features::SteerableFeature>& pool, size_t fold,
                   const Context& context) {
  std::vector<uint32_t> times;
  for (size_t i = 0; i < boxes.size(); ++i) {
    times.push_back(task.is_learned(boxes.case_of[i], fold) ? 1 : 0);
  }
  tree::ColumnTrees grown = tree::grow_on_columns(columns, times, context);
  Detector detector;
  detector.stage = task.stage;
  detector.trees = std::move(grown.trees);
  for (const uint32_t column : grown.columns) detector.steerable.push_back(pool[column]);
  return detector;
}

}  // namespace

int truth_of(StageKind kind, const Pose& pose, const Pose& truth, double spacing_mm,
             const TruthRule& rule) {
  const double offset = norm(pose.centre_mm - truth.centre_mm) / spacing_mm;
  if (kind == StageKind::kPosition) return offset <= 1 ? 1 : offset > 2 ? -1 : 0;
  const double angle = angle_between(pose.rotation, truth.rotation);
  const auto within = [&](double factor) {
    bool is_within = offset <= factor * rule.centre_voxels && angle <= factor * rule.angle_rad;
    for (int axis = 0; axis < 3 && kind == StageKind::kScale; ++axis) {
      is_within = is_within && std::abs(log_of(pose.edges_mm[axis] / truth.edges_mm[axis])) <=
                                   factor * rule.log_scale[axis];
    }
    return is_within;
  };
  return within(1) ? 1 : within(2) ? 0 : -1;
}

TrainedStage train_boxes(const StageTask& task, StageReport& report, const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  const Boxes boxes = draw_boxes(task, context.seed, report);
  if (boxes.size() == 0) {
    throw InputError("structure '" + task.model.structures[task.structure].name +
                     "': the stage before finds nothing in the training cases; give more cases");
  }
  const std::vector<features::SteerableFeature> pool =
      features::steerable_pool(task.config.features);
  const auto load = [&](size_t c) {
    CaseImages images =
        make_case_images(task.cases[c], task.model, task.stage.level, {}, {}, context);
    return features::ResidentImages{std::move(images.pyramid), images.level.views.steerable};
  };
  const features::FramesOfImages frames{boxes.frames, boxes.first, load};
  const int64_t bytes_left =
      voxels::bytes_beside_codes(boxes.size(), pool.size(), task.shared.memory_bytes, context);
  const std::vector<learning::CodeMap> maps = features::range_frames(frames, pool, context);
  const features::FrameCodes codes = features::fill_frames(frames, pool, maps, context);
  report.seconds_features = seconds_since(start);
  const SharedConfig& shared = task.shared;
  const bool is_ensemble = shared.classifier == voxels::ClassifierKind::kEnsemble;
  tree::ColumnTask columns{shared.tree, shared.validation, *codes.source, boxes.samples, maps};
  columns.samples_at_once = voxels::samples_at_once(pool.size(), bytes_left, context.device);
  if (is_ensemble) {
    columns.trees = shared.ensemble.trees;
    columns.feature_share = shared.ensemble.feature_share;
  }
  const std::vector<learning::CodeMap> of_codes = learning::maps_of_codes(maps);
  TrainedStage trained = train_folds(task, [&](size_t fold) {
    if (shared.classifier != voxels::ClassifierKind::kForest) {
      return grow_fold(task, boxes, columns, pool, fold, context);
    }
    StageForest grown =
        grow_forest(task, {*codes.source, boxes.samples, of_codes, maps}, fold, context);
    Detector detector{task.stage, {}, {}, {}, std::move(grown.forest)};
    for (const uint32_t column : grown.columns) detector.steerable.push_back(pool[column]);
    return detector;
  });
  report.seconds_trees = seconds_since(start) - report.seconds_features;
  return trained;
}

}  // namespace larch::hdn
