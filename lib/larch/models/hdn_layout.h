// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "larch/features/steerable/steerable.h"
#include "larch/hdn/train/train.h"
#include "larch/models/feature_layout.h"
#include "larch/models/tree_layout.h"
#include "larch/models/voxels_layout.h"

/// The parts of a hierarchical detection network and of its checkpoint.
namespace larch::models {

template <>
inline constexpr auto kLastEnumerator<features::SteerableType> =
    features::SteerableType::kLogAngleD;

/// A quaternion is w, x, y and z.
template <>
struct Elements<Quaternion> {
  using Element = double;
  static constexpr bool kFixed = true;
  static constexpr size_t kMaximum = 4;
  static size_t size(const Quaternion&) { return kMaximum; }
  static double& at(Quaternion& q, size_t i) {
    return i == 0 ? q.w : i == 1 ? q.x : i == 2 ? q.y : q.z;
  }
};

template <class V>
void layout(V& v, Pose& pose) {
  auto& [centre_mm, rotation, edges_mm] = pose;
  v("centre_mm", centre_mm, "centre of the box");
  v("rotation", rotation, "quaternion w x y z, from the axes of the box to those of the space");
  v("edges_mm", edges_mm, "full lengths of the box");
}

template <class V>
void layout(V& v, pose::RelativeGaussian& gaussian) {
  auto& [mean, covariance, count] = gaussian;
  v("mean", mean, "centre in mm, rotation vector in radians, logarithms of ratios of edges");
  v("covariance", covariance, "row by row");
  v("count", count, "pairs it was learned from; 0: it was not learned");
}

template <class V>
void layout(V& v, pose::PoseCorrection& correction) {
  auto& [input_mean, input_sd, weights] = correction;
  v("input_mean", input_mean, "logarithms of the edges, relative poses of the other structures");
  v("input_sd", input_sd, "standard deviations; inputs count up to three of them");
  v("weights", weights, "9 rows of a constant and a weight per input");
}

template <class V>
void layout(V& v, learning::Calibration& calibration) {
  auto& [probability, found, least] = calibration;
  v("slope", probability.slope, "of the logistic function that makes a score a probability");
  v("offset", probability.offset, "of the same");
  v("found", found, "with a smaller probability it is uncertain");
  v("least", least, "with a smaller one it is not found");
}

template <class V>
void layout(V& v, features::SteerableFeature& feature) {
  auto& [type, level, point] = feature;
  v("type", type, "what is measured");
  v("level", level, "halvings below the resolution of the stage");
  v("point", point, "x + 5 (y + 5 z) in the pattern of 5 x 5 x 5 points");
}

/// Without features and trees, which are sections of their own.
template <class V>
void layout(V& v, hdn::Detector& detector) {
  auto& [kind, level, keep, rotations, log_scales] = detector.stage;
  v("kind", kind, "what it looks for");
  v("level", level, "0 is the coarsest");
  v("keep", keep, "candidates that are kept");
  v("rotations", rotations, "orientation: quaternions tried in the frame of each candidate");
  v("log_scales", log_scales, "scale: logarithms of factors of the edges");
}

template <class V>
void layout(V& v, hdn::Structure& structure) {
  auto& [name, labels, parent, mean, to_parent, errors, agreement_rad, correction, calibration,
         mean_distance_mm, appearance, symmetries, detectors, root_position] = structure;
  v("name", name, "name of the structure");
  v("labels", labels, "its values in label maps");
  v("parent", parent, "index of the structure that is found before; -1: none");
  v("mean", mean, "rotation and edges of the search everywhere, LPS axes");
  v("to_parent", to_parent, "its pose as seen from the parent as that is found");
  v("errors", errors, "what is found, as seen from the truth");
  v("agreement_rad", agreement_rad, "by level: angle within which candidates agree");
  v("correction", correction, "by what is found of all structures");
  v("calibration", calibration, "of the sum of the log odds of its stages");
  v("symmetries", symmetries, "quaternions of its mean shape, in the frame of its box");
  v("detectors", detectors, "level by level, in the order of the stages");
  v("root_position", root_position, "of a child: searches everywhere, at most one");
}

/// The mean shape of a structure: signed distances on cubic voxels, single precision as its bits.
struct MeanShape {
  Volume<float>& distance_mm;
};
template <class V>
void layout(V& v, MeanShape& shape) {
  Grid grid = shape.distance_mm.grid();
  std::vector<uint32_t> bits;
  for (const float d : shape.distance_mm) bits.push_back(std::bit_cast<uint32_t>(d));
  v("size", grid.size, "voxels along the axes of the box");
  v("spacing_mm", grid.spacing_mm.x, "edge of a voxel");
  v("origin_mm", grid.origin_mm, "centre of the first voxel");
  v("distance_bits", bits, "IEEE 754 single, mm, negative inside");
  grid.spacing_mm = {grid.spacing_mm.x, grid.spacing_mm.x, grid.spacing_mm.x};
  shape.distance_mm = hdn::shape_of(grid, bits);
}

template <class V>
void layout(V& v, hdn::Appearance& appearance) {
  auto& [gains, mean, weight] = appearance;
  v("gains", gains, "shares of the changes that are made, 0 to 1");
  v("mean", mean,
    "1/1024 of the deviation, 24 x 24 x 24 points over 1.3 times the box; may be empty");
  v("weight", weight, "of the points");
}

/// The origin of a model; what its validation says is a section of its own.
template <class V>
void info_layout(V& v, ModelInfo& info) {
  auto& [tool_version, training, case_digests, seed, validation, about] = info;
  v("tool_version", tool_version, "version of Larch that trained it");
  v("seed", seed, "of all draws");
  v("case_digests", case_digests, "SHA-256 of each training case");
  v("training", JsonText{training}, "the configuration");
}

/// The origin of a network.
struct NetworkMeta {
  hdn::Model& model;
};
template <class V>
void layout(V& v, NetworkMeta& meta) {
  auto& [space, padding, halvings, channels, prior_weight, mean_of_first, structures, info] =
      meta.model;
  v("space", Space{space, padding}, "the images it is for, at the finest level");
  v("halvings", halvings, "levels that are coarser");
  v("prior_weight", prior_weight, "of the place that a parent suggests");
  v("mean_of_first", mean_of_first, "above 0: the pose is the mean of so many candidates");
  info_layout(v, info);
}

inline constexpr Kind kNetworkKind{"hdn", 3, "hierarchical detection network"};
/// The section of the structures tells how many detectors there are, so that it is read before
/// theirs.
template <class V>
void network_sections(V& v, hdn::Model& model) {
  v.section("meta", NetworkMeta{model}, {"what the model says about itself"});
  v.section("channels", model.channels, {"images that Haar features are computed on"});
  v.section("validation", model.info.validation,
            {"what cross-validation says", /*required=*/false});
  v.section("structures", model.structures, {"the structures, their stages and hypotheses"});
  const auto detectors = [&v](const std::string& of, std::vector<hdn::Detector>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string prefix = of + std::to_string(i) + "/";
      v.section(prefix + "haar_features", all[i].haar, {"features of a position stage"});
      v.section(prefix + "steerable_features", all[i].steerable, {"features of the other stages"});
      tree::Forest& forest = all[i].forest;
      const bool left_out = !all[i].is_forest();
      forest_sections(v, prefix + "forest/", forest, left_out);
      v.section(prefix + "forest/class_weights", forest.class_weight,
                {"factors of the counts of the classes", true, left_out});
      forest.classes = static_cast<uint32_t>(forest.class_weight.size());
      if (!all[i].is_forest()) ensemble_sections(v, prefix, all[i].trees);
    }
  };
  for (size_t s = 0; s < model.structures.size(); ++s) {
    const std::string prefix = "structures/" + std::to_string(s) + "/";
    v.section(prefix + "mean_shape", MeanShape{model.structures[s].mean_distance_mm},
              {"of label maps that were fitted"});
    v.section(prefix + "appearance", model.structures[s].appearance,
              {"what it looks like in the mean"});
    detectors(prefix + "detectors/", model.structures[s].detectors);
    detectors(prefix + "root_position/", model.structures[s].root_position);
  }
}
template <class V>
void sections(V& v, hdn::Model& model) {
  v.kind(kNetworkKind);
  about_section(v, model.info.about);
  network_sections(v, model);
}

/// Single precision as its bits, so that it comes back as it was.
template <class V>
void float_layout(V& v, const char* name, float& value, const char* doc) {
  auto bits = std::bit_cast<uint32_t>(value);
  v(name, bits, doc);
  value = std::bit_cast<float>(bits);
}
template <class V>
void layout(V& v, hdn::Candidate& candidate) {
  v("pose", candidate.pose, "along the axes of the case's grid, from its first voxel");
  float_layout(v, "probability_bits", candidate.probability, "of the detector; IEEE 754 single");
  float_layout(v, "score_bits", candidate.score, "that candidates are ordered by; the same");
}
template <class V>
void layout(V& v, hdn::Cluster& cluster) {
  auto& [pose, confidence, weight, spread_mm, spread_rad, members] = cluster;
  v("pose", pose, "mean of the members");
  v("confidence", confidence, "mean probability");
  v("weight", weight, "sum of the probabilities");
  v("spread_mm", spread_mm, "root of the mean square distance of centres");
  v("spread_rad", spread_rad, "the same of rotations");
  v("members", members, "candidates that agree");
}
template <class V>
void layout(V& v, hdn::CaseState& state) {
  auto& [candidates, clusters, log_odds] = state;
  v("candidates", candidates, "what the last stage kept");
  v("clusters", clusters, "what the last level found");
  v("log_odds", log_odds, "sum of those of the best candidates, less what is expected");
}

template <class V>
void layout(V& v, hdn::StageReport& report) {
  auto& [structure, kind, level, cases, positives, negatives, added_truth, first_positive,
         expected_log_odds, features, trees, detection] = report;
  v("structure", structure, "name of the structure");
  v("kind", kind, "what the stage looks for");
  v("level", level, "0 is the coarsest");
  v("cases", cases, "cases that it learned from");
  v("positives", positives, "hypotheses near the truth");
  v("negatives", negatives, "other hypotheses");
  v("added_truth", added_truth, "cases whose truth was added to what was found");
  v("first_positive", first_positive, "by case: rank of the first candidate near the truth; -1");
  v("expected_log_odds", expected_log_odds, "of the best candidate in cases learned from");
  v("features_s", features, "seconds that it took");
  v("trees_s", trees, "seconds that it took");
  v("detection_s", detection, "seconds that it took");
}

/// The reports of structures are made at the end.
template <class V>
void sections(V& v, Checkpoint<hdn::PartialTraining>& checkpoint) {
  v.kind({"hdn-checkpoint", 3, "hierarchical detection network in training"});
  auto& [fingerprint, training] = checkpoint;
  v.section("fingerprint", fingerprint, {"digest of the settings and the training data"});
  v.section("reports", training.report.stages, {"what the stages made of the training cases"});
  v.section("found", training.found, {"by structure and case: what was found so far"});
  v.section("elsewhere", training.elsewhere, {"the same, away from the structure"});
  network_sections(v, training.model);
}

}  // namespace larch::models
