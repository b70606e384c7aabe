// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "larch/core/error.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pose/mean_rotation.h"

namespace larch::hdn {

std::vector<std::vector<Candidate>> cross_predict(const StageTask& task,
                                                  const TrainedStage& trained,
                                                  const Context& context) {
  std::vector<const Detector*> detectors;
  for (const Detector& d : trained.folds) detectors.push_back(&d);
  if (detectors.empty()) detectors.push_back(&trained.full);
  std::vector<ResidentDetector> resident;
  Vec3i reach{1, 1, 1};
  for (const Detector* d : detectors) {
    resident.push_back(make_resident(*d, {}, context.device));
    const Vec3i r = features::reach_along(d->haar);
    for (int axis = 0; axis < 3; ++axis) reach[axis] = std::max(reach[axis], r[axis]);
  }
  std::span<const image::ChannelSpec> channels;
  if (!task.is_of_boxes()) channels = task.model.channels;
  std::vector<std::vector<Candidate>> kept(task.cases.size());
  for (size_t c = 0; c < task.cases.size(); ++c) {
    if (task.searches[c].is_empty(task.stage.kind)) continue;
    const CaseImages images =
        make_case_images(task.cases[c], task.model, task.stage.level, channels, reach, context);
    kept[c] = search_case(task.searches[c], resident[detectors.size() == 1 ? 0 : task.fold_of(c)],
                          images, context);
    context.throw_if_stopped("stopped; continue with --resume");
  }
  return kept;
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
