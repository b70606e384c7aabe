// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "larch/core/error.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pose/mean_rotation.h"

namespace larch::hdn {

namespace {

/// The detectors of the folds and, last, that of all cases.
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
