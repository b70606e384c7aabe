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
#include "larch/learning/stored_codes.h"
#include "larch/tree/self_test.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/select.h"

namespace larch::hdn {
namespace {

using features::SteerableFrame;

constexpr uint64_t kPositiveStream = 0x706f73, kNegativeStream = 0x6e6567, kHardStream = 0x68617264,
                   kJitterStream = 0x6a6974, kRangeStream = 0x72616e67, kFoldStream = 0x666f6c64;
/// A network has many detectors, with a feature for each weak classifier. With more vectors these
/// would be most of its file.
constexpr size_t kSelfTests = 8;
/// Cases whose images are in memory together when the ranges of features are taken.
constexpr size_t kRangeCases = 16;

/// The boxes that are learned from.
struct Boxes {
  tree::Samples samples;
  std::vector<SteerableFrame> frames;
  std::vector<uint32_t> case_of;
  std::vector<size_t> first;  ///< of each case; one more at the end

  size_t size() const { return frames.size(); }
};

/// A hypothesis of a case by its number, moved by up to the jitter.
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
  boxes.samples.id.push_back(static_cast<uint64_t>(c) << 40 | number);
  boxes.samples.positive.push_back(positive ? 1 : 0);
  boxes.samples.mass.push_back(uint64_t{1} << 32);
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
    add_box(task, c, kMostSlots + k, box, true, seed, boxes);
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

/// A source of the columns at boxes of one or several cases.
struct BoxSource {
  Buffer<SteerableFrame> frames;
  Buffer<features::SteerableImages> images;
  Buffer<uint32_t> image_of;
  std::unique_ptr<learning::FeatureSource> source;
};
BoxSource make_box_source(const Buffer<features::SteerableFeature>& pool,
                          std::span<const SteerableFrame> frames,
                          std::span<const features::SteerableImages> images,
                          std::span<const uint32_t> image_of, const Device& device) {
  BoxSource s{Buffer<SteerableFrame>(device, frames),
              Buffer<features::SteerableImages>(device, images), Buffer<uint32_t>(device, image_of),
              nullptr};
  const features::SteerableResponse response{pool.data(), s.frames.data(), s.images.data(),
                                             image_of.empty() ? nullptr : s.image_of.data()};
  s.source = features::make_steerable_source(response, pool.size(), device);
  return s;
}

/// The code maps of the columns, of boxes of a few cases that are drawn by hash.
std::vector<learning::CodeMap> range_columns(const StageTask& task, const Boxes& boxes,
                                             const Buffer<features::SteerableFeature>& pool,
                                             const Context& context) {
  std::vector<uint32_t> with_boxes;
  for (size_t c = 0; c < task.cases.size(); ++c) {
    if (boxes.first[c + 1] > boxes.first[c]) with_boxes.push_back(static_cast<uint32_t>(c));
  }
  const auto hash = [&](uint32_t i) { return hash64(context.seed, kRangeStream, i); };
  const std::vector<uint32_t> chosen =
      learning::lowest_hashes(with_boxes, kRangeCases, context.threads, hash);
  std::vector<CaseImages> images;
  std::vector<features::SteerableImages> views;
  std::vector<SteerableFrame> frames;
  std::vector<uint32_t> image_of;
  for (const uint32_t c : chosen) {
    images.push_back(
        make_case_images(task.cases[c], task.model, task.stage.level, {}, {}, context));
    views.push_back(images.back().level.views.steerable);
    std::vector<uint32_t> all(boxes.first[c + 1] - boxes.first[c]);
    std::iota(all.begin(), all.end(), static_cast<uint32_t>(boxes.first[c]));
    for (const uint32_t i : learning::lowest_hashes(all, learning::kMostRanged / chosen.size(),
                                                    context.threads, hash)) {
      frames.push_back(boxes.frames[i]);
      image_of.push_back(static_cast<uint32_t>(views.size() - 1));
    }
  }
  const BoxSource source = make_box_source(pool, frames, views, image_of, context.device);
  std::vector<uint32_t> all(frames.size());
  std::iota(all.begin(), all.end(), 0U);
  return source.source->range(all, context);
}

/// The codes of all columns at all boxes: a matrix for each case.
struct BoxCodes {
  std::vector<learning::FeatureMatrix> matrices;
  Buffer<learning::StoredRow> rows;
  std::unique_ptr<learning::FeatureSource> source;
};
BoxCodes fill_codes(const StageTask& task, const Boxes& boxes,
                    const Buffer<features::SteerableFeature>& pool,
                    std::span<const learning::CodeMap> maps, const Context& context) {
  BoxCodes codes;
  std::vector<learning::StoredRow> rows;
  std::shared_ptr<const learning::PreparedColumns> prepared;
  for (size_t c = 0; c < task.cases.size(); ++c) {
    const size_t first = boxes.first[c], count = boxes.first[c + 1] - first;
    if (count == 0) continue;
    const CaseImages images =
        make_case_images(task.cases[c], task.model, task.stage.level, {}, {}, context);
    const BoxSource source =
        make_box_source(pool, std::span(boxes.frames).subspan(first, count),
                        {&images.level.views.steerable, 1}, {}, context.device);
    if (!prepared) prepared = learning::prepare_all(*source.source, maps, context);
    std::vector<uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0U);
    codes.matrices.push_back(learning::fill_matrix(*source.source, *prepared, all, context));
    const uint8_t* at = codes.matrices.back().codes.data();
    for (size_t k = 0; k < count; ++k) rows.push_back({at, count, k});
    context.throw_if_stopped("stopped; continue with --resume");
  }
  codes.rows =
      Buffer<learning::StoredRow>(context.device, std::span<const learning::StoredRow>(rows));
  codes.source = learning::make_stored_source(
      {codes.rows.data(), static_cast<uint32_t>(learning::block_width(context.device))},
      pool.size(), context.device);
  return codes;
}

/// Appends a grown tree to a detector, whose features are those that its trees use.
void append_tree(Detector& detector, tree::Ensemble grown,
                 const std::vector<features::SteerableFeature>& pool,
                 std::span<const learning::CodeMap> maps) {
  tree::Ensemble& all = detector.trees;
  const auto nodes = static_cast<int32_t>(all.nodes.size());
  const auto weaks = static_cast<uint32_t>(all.weaks.size());
  for (tree::WeakClassifier& weak : grown.weaks) {
    weak.codes = maps[weak.feature];
    const features::SteerableFeature feature = pool[weak.feature];
    weak.feature = static_cast<uint32_t>(detector.steerable.size());
    detector.steerable.push_back(feature);
  }
  for (tree::Node& node : grown.nodes) {
    if (!node.is_leaf()) {
      node.left += nodes;
      node.right += nodes;
    }
    if (node.n_weak > 0) node.first_weak += weaks;
  }
  if (nodes == 0) {
    all = std::move(grown);
    all.history.clear();
    return;
  }
  all.roots.push_back(static_cast<uint32_t>(nodes));
  all.weaks.insert(all.weaks.end(), grown.weaks.begin(), grown.weaks.end());
  all.nodes.insert(all.nodes.end(), grown.nodes.begin(), grown.nodes.end());
}

/// The trees of one fold.
Detector grow_fold(const StageTask& task, const Boxes& boxes, const BoxCodes& codes,
                   const std::vector<features::SteerableFeature>& pool,
                   std::span<const learning::CodeMap> maps, size_t fold, const Context& context) {
  Detector detector;
  detector.stage = task.stage;
  const pbt::TrainConfig& shared = task.shared;
  const bool is_ensemble = shared.classifier == pbt::ClassifierKind::kEnsemble;
  const tree::Ensemble start = tree::start_tree(shared.tree, boxes.samples);
  const std::vector<learning::CodeMap> of_codes = learning::maps_of_codes(maps);
  const tree::Samples none;
  Context quiet = context;
  quiet.progress_sink = {};
  for (int t = 0; t < (is_ensemble ? shared.ensemble.trees : 1); ++t) {
    tree::GrowTask grow{shared.tree,
                        shared.validation,
                        {*codes.source, boxes.samples},
                        {*codes.source, none},
                        of_codes};
    grow.seed = hash64(context.seed, kFoldStream, static_cast<uint64_t>(t));
    for (size_t i = 0; i < boxes.size(); ++i) {
      grow.times.push_back(task.is_learned(boxes.case_of[i], fold) ? 1 : 0);
    }
    if (is_ensemble) {
      const double share = shared.ensemble.feature_share * static_cast<double>(pool.size());
      grow.columns =
          tree::draw_columns({}, pool.size(), static_cast<size_t>(std::ceil(share)), grow.seed, 0);
    }
    append_tree(detector, tree::grow(start, grow, quiet).tree, pool, maps);
  }
  detector.trees.self_tests =
      tree::make_self_tests(detector.trees, detector.steerable.size(), context.seed, kSelfTests);
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
  const auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const Boxes boxes = draw_boxes(task, context.seed, report);
  if (boxes.size() == 0) {
    throw InputError("structure '" + task.model.structures[task.structure].name +
                     "': the stage before finds nothing in the training cases; give more cases");
  }
  const std::vector<features::SteerableFeature> pool =
      features::steerable_pool(task.config.features);
  const Buffer<features::SteerableFeature> there(context.device,
                                                 std::span<const features::SteerableFeature>(pool));
  const std::vector<learning::CodeMap> maps = range_columns(task, boxes, there, context);
  const BoxCodes codes = fill_codes(task, boxes, there, maps, context);
  report.seconds_features = seconds();
  TrainedStage trained;
  const auto folds = static_cast<size_t>(task.config.folds);
  trained.full = grow_fold(task, boxes, codes, pool, maps, folds, context);
  for (size_t fold = 0; folds > 1 && fold < folds; ++fold) {
    trained.folds.push_back(grow_fold(task, boxes, codes, pool, maps, fold, context));
  }
  report.seconds_trees = seconds() - report.seconds_features;
  return trained;
}

}  // namespace larch::hdn
