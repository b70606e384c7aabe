// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/poses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "larch/core/text.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/layers.h"
#include "larch/models/layout.h"
#include "larch/opened_model.h"
#include "larch/pose/box_voxels.h"

namespace larch {
namespace {

/// "kept_4mm_position": what a detector's number of candidates is called.
std::string kept_name(const hdn::Model& model, const hdn::Stage& stage) {
  return formatted("kept_%gmm_", model.spacing_mm(stage.level)) +
         models::enumerator_name(stage.kind);
}

std::string status_of(const hdn::FoundStructure& found, const hdn::Model& model, size_t s) {
  switch (found.status) {
    case hdn::FoundStatus::kFound:
      return "found";
    case hdn::FoundStatus::kUncertain:
      return "uncertain";
    case hdn::FoundStatus::kNotFound:
      return "not found";
    case hdn::FoundStatus::kSkipped:
      break;
  }
  return "skipped: parent " +
         model.structures[static_cast<size_t>(model.structures[s].parent)].name;
}

/// A structure as files tell it; what was not found has no pose.
DetectedPose detected(const hdn::FoundStructure& found, const hdn::ResidentModel& network,
                      size_t s) {
  DetectedPose out;
  out.name = network.model.structures[s].name;
  out.status = status_of(found, network.model, s);
  if (found.status == hdn::FoundStatus::kSkipped) return out;
  out.confidence = found.confidence;
  out.pose = found.pose;
  out.has_pose = found.status != hdn::FoundStatus::kNotFound;
  out.figures = {{"support", found.support},
                 {"spread_mm", found.spread_mm},
                 {"spread_deg", found.spread_deg},
                 {"truncated", found.truncated ? 1 : 0},
                 {"searched_everywhere", found.is_fallback ? 1 : 0}};
  for (size_t k = 0; k < found.kept.size(); ++k) {
    out.figures.emplace_back(kept_name(network.model, network.detectors[s][k].stage),
                             found.kept[k]);
  }
  return out;
}

/// Decides where two boxes overlap: what was found inside of another structure is more special than
/// that; otherwise the surer one is. `later` comes after `earlier` in the model.
bool goes_over(const FoundPoses& found, size_t later, size_t earlier) {
  for (int32_t s = found.parents[later]; s >= 0; s = found.parents[static_cast<size_t>(s)]) {
    if (static_cast<size_t>(s) == earlier) return true;
  }
  return found.poses[later].confidence > found.poses[earlier].confidence;
}

}  // namespace

FoundPoses find_poses(const Model& model, Volume<float> image, const Context& context,
                      const std::string& name) {
  const auto& network =
      opened_as<hdn::ResidentModel>(model, "a network, which finds poses of structures");
  FoundPoses out;
  const Grid grid = image.grid();
  Volume<int16_t> voxels;
  {
    const Step step(out.seconds, "model space", 0, context);
    voxels = image::to_model_space(image, network.model.space, context, name);
    image = {};
  }
  std::vector<hdn::FoundStructure> found;
  hdn::SharedTimes shared;
  {
    const Turn turn = context.turn();
    const Step step(out.seconds, "detection", 0.2, turn.context());
    found = hdn::detect(network, voxels, grid, turn.context(), &shared);
  }
  if (network.on_host) {
    out.seconds.back().second -= shared.cpu_seconds + shared.wait_seconds;
    out.seconds.emplace_back("orientation on the CPU", shared.cpu_seconds);
    out.seconds.emplace_back("sending scores, waiting for the GPU", shared.wait_seconds);
  }
  {
    const Step step(out.seconds, "correction", 0.8, context);
    hdn::correct(network.model, found, voxels, grid, context);
  }
  for (size_t s = 0; s < found.size(); ++s) {
    out.poses.push_back(detected(found[s], network, s));
    out.parents.push_back(network.model.structures[s].parent);
  }
  return out;
}

LabelVolume label_boxes(const FoundPoses& found, const Grid& grid, int threads) {
  LabelVolume labels(grid);
  for (size_t k = 0; k < found.poses.size(); ++k) {
    if (!found.poses[k].has_pose) continue;
    pose::for_voxels_in(found.poses[k].pose, grid, threads, [&](const Vec3i& at) {
      int32_t& value = labels(at);
      if (value == 0 || goes_over(found, k, static_cast<size_t>(value - 1))) {
        value = static_cast<int32_t>(k) + 1;
      }
    });
  }
  return labels;
}

std::vector<LabelVolume> layered_boxes(const FoundPoses& found, const Grid& grid, int threads) {
  return layers_of(found.poses.size(), grid, [&](size_t k) {
    FoundPoses alone = found;
    for (size_t i = 0; i < found.poses.size(); ++i) alone.poses[i].has_pose &= i == k;
    return label_boxes(alone, grid, threads);
  });
}

}  // namespace larch
