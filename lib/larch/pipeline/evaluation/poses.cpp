// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/markups/markups.h"
#include "larch/models/model_file.h"
#include "larch/pipeline/evaluation/scored_cases.h"
#include "larch/pose/truth.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes per byte of a JSON file that is in memory.
constexpr int64_t kJsonPerByte = 20;

/// A structure of the reference, and what the prediction has of it.
struct PosePair {
  std::string name;
  std::optional<Pose> found, truth;
  double confidence;  ///< NaN: unknown
};

/// Returns the poses of a file of poses, or of the structures in a label map.
std::vector<DetectedPose> poses_of(const std::string& path, const hdn::Model* network,
                                   const ReadOptions& read) {
  if (path.ends_with(".json")) return read_poses_or_points(path).poses;
  if (network == nullptr) {
    throw InputError("'" + path +
                     "' is no file of poses (.json); for a label map give --model, to "
                     "whose mean shapes it is fitted");
  }
  const LabelVolume labels = read_labels(path, read);
  std::vector<DetectedPose> poses;
  for (const hdn::Structure& s : network->structures) {
    const Volume<uint8_t> mask = pose::mask_of(labels, s.labels);
    DetectedPose& found = poses.emplace_back();
    found.name = s.name;
    found.has_pose = !mask.empty();
    if (found.has_pose) found.pose = pose::fit_pose(mask, s.mean_distance_mm).pose;
  }
  return poses;
}

std::vector<PosePair> read_pose_pairs(const Case& c, const hdn::Model* network,
                                      const EvaluationRequest& request) {
  const std::vector<DetectedPose> reference = poses_of(c.label, network, request.read);
  std::map<std::string, DetectedPose> found;
  if (!request.missing.contains(c.id)) {
    for (DetectedPose& one : poses_of(c.image, network, request.read)) found[one.name] = one;
  }
  const auto pose_of = [](const DetectedPose& one) {
    return one.has_pose ? std::optional(one.pose) : std::nullopt;
  };
  std::vector<PosePair> pairs;
  for (const DetectedPose& truth : reference) {
    const DetectedPose& one = found[truth.name];
    pairs.push_back({truth.name, pose_of(one), pose_of(truth), one.confidence});
  }
  if (pairs.empty()) throw InputError("'" + c.label + "': it names no structure");
  return pairs;
}

/// By structure: the confidences where it is there and where it is not. A structure that is not
/// found and has no confidence has 0.
struct Confidences {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> of{};

  void add(const PosePair& pair) {
    const bool is_known = !std::isnan(pair.confidence);
    if (!is_known && pair.found) return;
    auto& [there, absent] = of[pair.name];
    (pair.truth ? there : absent).push_back(is_known ? pair.confidence : 0);
  }
  /// Reports the area under the curve of each structure that has both, and their mean.
  void report(Outputs& outputs) const {
    Json areas = Json::object();
    double sum = 0;
    for (const auto& [name, both] : of) {
      const double area = area_under_curve(both.first, both.second);
      if (std::isnan(area)) continue;
      areas[name] = area;
      sum += area;
    }
    if (areas.empty()) return;
    outputs.metric("confidence_auc", sum / static_cast<double>(areas.size()));
    outputs.report("confidence_auc", areas);
  }
};

/// Returns the network of a request, or none.
std::optional<hdn::Model> network_of(const EvaluationRequest& request) {
  if (request.model.empty()) return {};
  return models::read_model<hdn::Model>(request.model);
}

/// Returns the rotations after which a structure looks the same.
std::span<const Quaternion> symmetries_of(const hdn::Model* network, const std::string& name) {
  if (network == nullptr) return {};
  for (const hdn::Structure& s : network->structures) {
    if (s.name == name) return s.symmetries;
  }
  return {};
}

Json to_json(const Pose* pose) {
  if (pose == nullptr) return {};
  const auto& [centre, q, edges] = *pose;
  return {{"center_mm", {centre.x, centre.y, centre.z}},
          {"quaternion_wxyz", {q.w, q.x, q.y, q.z}},
          {"size_mm", {edges.x, edges.y, edges.z}}};
}

}  // namespace

Outputs evaluate_poses(const EvaluationRequest& request, const Context& context) {
  const std::optional<hdn::Model> model = network_of(request);
  const hdn::Model* network = model ? &*model : nullptr;
  std::vector<Json> compared(request.cases.size());
  Confidences confidences;
  std::mutex adding;
  const auto size = [&](const Case& c) {
    const int64_t bytes = bytes_of_prediction(request, c) + file_bytes(c.label);
    return cases::CaseSize{bytes, kJsonPerByte * bytes};
  };
  const auto score = [&](const Case& c, const Context&) {
    std::vector<StructureScores> scores;
    Json& poses = compared[static_cast<size_t>(&c - request.cases.data())];
    for (const PosePair& pair : read_pose_pairs(c, network, request)) {
      const Pose *found = pair.found ? &*pair.found : nullptr,
                 *truth = pair.truth ? &*pair.truth : nullptr;
      scores.push_back(score_pose(pair.name, found, truth, symmetries_of(network, pair.name)));
      poses[pair.name] = {{"prediction", to_json(found)}, {"reference", to_json(truth)}};
      const std::lock_guard lock(adding);
      confidences.add(pair);
    }
    return scores;
  };
  std::vector<CaseScores> scored = score_cases(request, size, score, context);
  Outputs outputs = outputs_of(request, scored, /*whole=*/"");  // no structure has this name
  outputs.report("poses", compared);
  confidences.report(outputs);
  for (CaseScores& c : scored) {
    for (StructureScores& s : c.structures) s.structure = "all";
  }
  for (const SummaryRow& row : summarise(scored)) {
    outputs.metric(row.score, row.summary.mean);
  }
  return outputs;
}

Plan plan_poses(const EvaluationRequest& request, const Context& context) {
  const std::optional<hdn::Model> model = network_of(request);
  const auto row = [&](const Case& c) -> std::vector<std::string> {
    const std::vector<PosePair> pairs = read_pose_pairs(c, model ? &*model : nullptr, request);
    const auto found =
        std::ranges::count_if(pairs, [](const PosePair& pair) { return pair.found.has_value(); });
    return {std::to_string(pairs.size()), std::to_string(found)};
  };
  return plan_cases(
      request, {"id", "structures", "found"}, row, [] {}, context);
}

}  // namespace larch::pipeline
