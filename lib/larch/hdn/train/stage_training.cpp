// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/train/stage_training.h"

#include <algorithm>
#include <array>
#include <map>

#include "larch/core/error.h"
#include "larch/pbt/model.h"
#include "larch/pose/mean_rotation.h"
#include "larch/tree/train/grow_forest.h"

namespace larch::hdn {

CaseImages make_case_images(const TrainingCase& c, const Model& model, int level,
                            std::span<const image::ChannelSpec> channels, const Vec3i& reach,
                            const Context& context) {
  CaseImages images;
  images.pyramid = image::make_levels(c.levels[static_cast<size_t>(level)].view(),
                                      features::kSteerableLevels - 1, 0, context, c.extent);
  const LevelSpec spec{channels, model.padding, reach, model.space.intensity.steps};
  images.level = make_level_images(images.pyramid, 0, model.scale(level), spec, context);
  return images;
}

void make_segment(const CaseSearch& search, const ResidentDetector& detector,
                  const LevelViews& level, HostSegment& out) {
  out.seed_count = static_cast<int32_t>(search.seeds.size());
  out.candidate_count = static_cast<int32_t>(search.candidates.size());
  const Seed* seeds = search.seeds.data();
  if (detector.stage.kind != StageKind::kPosition) {
    out.segment =
        pose_segment(detector, search.candidates.data(), &out.candidate_count, out.candidate_count);
  } else if (search.search == SearchKind::kRoot) {
    out.segment = root_segment(detector, level.size, search.base);
  } else if (search.search == SearchKind::kAround) {
    out.segment = around_segment(detector, seeds, &out.seed_count);
  } else {
    out.segment = prior_segment(detector, seeds, &out.seed_count, search.to_parent,
                                search.prior_weight, level.scale.spacing_mm);
  }
  out.segment.avoided_mm = search.avoided_mm;
  out.segment.avoided_square = search.avoided_square;
}

std::vector<Candidate> search_case(const CaseSearch& search, const ResidentDetector& detector,
                                   const CaseImages& images, const Context& context) {
  if (search.is_empty(detector.stage.kind)) return {};
  const Device& device = context.device;
  HostSegment host;
  make_segment(search, detector, images.level.views, host);
  Segment& s = host.segment;
  StageView view = plan_launch(detector.stage.kind, {&s, 1});
  const Buffer<Seed> seeds(device, search.seeds);
  const Buffer<Candidate> in(device, search.candidates);
  const std::vector<int32_t> counts{host.seed_count, host.candidate_count, 0};
  Buffer<int32_t> there(device, std::span<const int32_t>(counts));
  Buffer<Candidate> out(device, static_cast<size_t>(s.keep));
  s.seeds = seeds.data();
  s.in = in.data();
  s.seed_count = there.data();
  s.in_count = there.data() + 1;
  s.out = out.data();
  s.out_count = there.data() + 2;
  const Buffer<Segment> segment(device, std::span<const Segment>(&s, 1));
  Buffer<uint64_t> keys(device, view.slots);
  Buffer<float> probabilities(device, view.slots);
  view.level = images.level.views;
  view.segments = segment.data();
  view.keys = keys.data();
  view.probabilities = probabilities.data();
  run_stage(view, context);
  std::vector<Candidate> kept = out.to_vector();
  kept.resize(static_cast<size_t>(there.to_vector()[2]));
  return kept;
}

std::vector<Cluster> cluster_candidates(const std::vector<Candidate>& candidates,
                                        const pose::ClusterRule& rule) {
  const auto count = static_cast<int32_t>(candidates.size());
  std::vector<Cluster> clusters(pose::kMaximumClusters);
  int32_t found = 0;
  const ClusterJob job{candidates.data(), &count, rule, clusters.data(), &found};
  cpu::make_clusters(Buffer<ClusterJob>(Device::cpu(), std::span<const ClusterJob>(&job, 1)), {});
  clusters.resize(static_cast<size_t>(found));
  return clusters;
}

namespace {

/// Turns thresholds of codes into those of the values that `maps` make the codes of.
void decode_thresholds(tree::Forest& forest, std::span<const uint32_t> columns,
                       std::span<const learning::CodeMap> maps) {
  for (tree::ForestNode& node : forest.nodes) {
    if (node.is_leaf()) continue;
    const learning::CodeMap& map = maps[columns[node.feature]];
    node.low = tree::first_value(map, static_cast<uint32_t>(node.low));
    if (node.high == INT32_MAX) continue;
    node.high = tree::first_value(map, static_cast<uint32_t>(node.high) + 1) - 1;
  }
}

}  // namespace

StageForest grow_forest(const StageTask& task, const StageColumns& from, size_t fold,
                        const Context& context) {
  const tree::ForestConfig& config = task.shared.forest;
  const tree::Samples& samples = from.samples;
  const std::vector<uint16_t> label(samples.positive.begin(), samples.positive.end());
  std::vector<uint64_t> cases;                        // that are learned from and have samples
  std::vector<size_t> place(label.size(), SIZE_MAX);  // of each sample's case among them
  std::array<uint64_t, 2> counts{};
  for (size_t i = 0; i < label.size(); ++i) {
    const uint64_t c = samples.id[i] >> 40;
    if (!task.is_learned(c, fold)) continue;
    if (cases.empty() || cases.back() != c) cases.push_back(c);
    place[i] = cases.size() - 1;
    ++counts[label[i]];
  }
  if (cases.empty()) {
    throw InputError("structure '" + task.model.structures[task.structure].name +
                     "': the cases that a fold learns from give no sample; give more cases, or set "
                     "hdn/folds to 1");
  }
  const std::vector<uint32_t> weights = tree::class_weights(config, counts);
  const tree::RoundColumns all = tree::all_columns({std::shared_ptr<void>(), &from.source},
                                                   {from.maps.begin(), from.maps.end()});
  std::vector<tree::ForestTree> trees;
  for (size_t t = 0; t < static_cast<size_t>(config.trees); ++t) {
    const uint64_t seed = tree::tree_seed(context.seed, t);
    std::vector<uint32_t> drawn(cases.size(), 1), times;
    if (config.bootstrap.value_or(true)) drawn = tree::bootstrap_counts(cases.size(), seed);
    for (const size_t p : place) times.push_back(p < cases.size() ? drawn[p] : 0);
    tree::ForestTask grow{config, 2, label, times, weights, seed};
    grow.memory_bytes = task.shared.memory_bytes / 2;
    grow.draw = [&](uint32_t round) {
      return tree::draw_round(all, config.round_features, seed, round);
    };
    trees.push_back(tree::grow_tree(grow, context).tree);
  }
  StageForest out;
  std::map<uint32_t, uint32_t> numbers;
  out.forest = tree::forest_of(trees, 2, weights, [&](size_t, const tree::PickedColumn& pick) {
    const auto [entry, is_new] =
        numbers.emplace(pick.column, static_cast<uint32_t>(out.columns.size()));
    if (is_new) out.columns.push_back(pick.column);
    return entry->second;
  });
  if (!from.codes_of.empty()) decode_thresholds(out.forest, out.columns, from.codes_of);
  out.forest.self_tests = tree::make_self_tests(out.forest, context.seed);
  return out;
}

namespace {

/// Returns the detectors of the folds and, last, that of all cases.
std::vector<ResidentDetector> residents(const TrainedStage& trained, const Device& device) {
  std::vector<ResidentDetector> all;
  for (const Detector& d : trained.folds) all.push_back(make_resident(d, {}, device));
  all.push_back(make_resident(trained.full, {}, device));
  return all;
}

Vec3i reach_of(const TrainedStage& trained) {
  Vec3i reach{1, 1, 1};
  const auto add = [&](const Detector& d) {
    const Vec3i r = features::reach_along(d.haar);
    for (int axis = 0; axis < 3; ++axis) reach[axis] = std::max(reach[axis], r[axis]);
  };
  for (const Detector& d : trained.folds) add(d);
  add(trained.full);
  return reach;
}

double best_log_odds(const std::vector<Candidate>& candidates) {
  return log_odds(candidates.empty() ? 0 : candidates[0].probability);
}

/// The mean of the log odds that a detector has in a few cases that it learned from.
struct Expectation {
  static constexpr int kCases = 8;
  double sum = 0;
  int count = 0;
  double mean() const { return count > 0 ? sum / count : 0; }
};

}  // namespace

CrossPrediction cross_predict(const StageTask& task, const TrainedStage& trained,
                              const std::vector<CaseSearch>& elsewhere, const Context& context) {
  const std::vector<ResidentDetector> resident = residents(trained, context.device);
  const size_t cases = task.cases.size(), full = resident.size() - 1;
  const auto of_case = [&](size_t c) { return full > 0 ? task.fold_of(c) : full; };
  std::span<const image::ChannelSpec> channels;
  if (!task.is_of_boxes()) channels = task.model.channels;
  const Vec3i reach = reach_of(trained);
  CrossPrediction out{CaseCandidates(cases), CaseCandidates(cases), {}, {}};
  std::vector<Expectation> expected(resident.size());
  for (size_t c = 0; c < cases; ++c) {
    const bool is_empty = task.searches[c].is_empty(task.stage.kind);
    const bool has_elsewhere = !elsewhere.empty() && !elsewhere[c].is_empty(task.stage.kind);
    if (is_empty && !has_elsewhere) continue;
    const CaseImages images =
        make_case_images(task.cases[c], task.model, task.stage.level, channels, reach, context);
    const auto search = [&](const CaseSearch& where, size_t detector) {
      return search_case(where, resident[detector], images, context);
    };
    out.kept[c] = search(task.searches[c], of_case(c));
    if (has_elsewhere) out.elsewhere[c] = search(elsewhere[c], of_case(c));
    const bool is_measured = !elsewhere.empty() && task.truth(c) && !is_empty;
    for (size_t d = 0; d < resident.size() && is_measured; ++d) {
      const bool is_learned = d == full || task.is_learned(c, d);
      if (!is_learned || expected[d].count == Expectation::kCases) continue;
      expected[d].sum += best_log_odds(search(task.searches[c], d));
      ++expected[d].count;
    }
    context.throw_if_stopped("stopped; continue with --resume");
  }
  for (size_t c = 0; c < cases; ++c) {
    const double mean = expected[of_case(c)].mean();
    out.log_odds.push_back(best_log_odds(out.kept[c]) - mean);
    out.log_odds_elsewhere.push_back(best_log_odds(out.elsewhere[c]) - mean);
  }
  out.expected_log_odds = expected[full].mean();
  return out;
}

CaseSearch root_search(const TrainingCase& c, const Structure& structure) {
  CaseSearch search;
  search.base = {{}, grid_from_world(c.grid, structure.mean).rotation, structure.mean.edges_mm};
  return search;
}

void throw_missing(const std::string& structure) {
  throw InputError("structure '" + structure +
                   "' occurs in no training case; check its labels, or its name in the files of "
                   "poses, or leave it out");
}

Pose mean_pose(const std::vector<TrainingCase>& cases, size_t s, const std::string& name) {
  pose::RotationSum turns;
  Vec3d edges{};
  double count = 0;
  for (const TrainingCase& c : cases) {
    const std::optional<Pose>& truth = c.truth[s];
    if (!truth) continue;
    turns.add(truth->rotation, 1);
    edges += {log_of(truth->edges_mm.x), log_of(truth->edges_mm.y), log_of(truth->edges_mm.z)};
    count += 1;
  }
  if (count == 0) throw_missing(name);
  Pose mean;
  mean.rotation = pose::mean_rotation(turns);
  mean.edges_mm = {exp_of(edges.x / count), exp_of(edges.y / count), exp_of(edges.z / count)};
  return mean;
}

}  // namespace larch::hdn
