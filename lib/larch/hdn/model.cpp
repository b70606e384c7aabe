// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "larch/core/error.h"
#include "larch/pose/hypotheses.h"
#include "larch/tree/check.h"
#include "larch/voxels/model.h"

namespace larch::hdn {
namespace {

using tree::refuse_model;

void check_detector(const Detector& d, const Model& model, const std::string& where) {
  const Stage& s = d.stage;
  if (s.level < 0 || s.level >= model.levels()) refuse_model(where + " is of a level that is none");
  if (s.keep < 1 || s.keep > pose::kMaximumCandidates) {
    refuse_model(where + " keeps " + std::to_string(s.keep) + " candidates");
  }
  const bool is_position = s.kind == StageKind::kPosition;
  if (!d.haar.empty() && (!is_position || !d.steerable.empty())) {
    refuse_model(where + " has features of another kind of stage");
  }
  if (s.rotations.empty() == (s.kind == StageKind::kOrientation) ||
      s.log_scales.empty() == (s.kind == StageKind::kScale) ||
      s.rotations.size() > pose::kMaximumRotations || s.log_scales.size() > pose::kMaximumScales) {
    refuse_model(where + " has hypotheses of another kind of stage, none, or too many");
  }
  for (const Quaternion& q : s.rotations) {
    if (!(std::abs(dot(q, q) - 1) < 1e-6)) refuse_model(where + " has a rotation that is none");
  }
  for (const Vec3d& v : s.log_scales) {
    if (!(std::abs(v.x) < 5 && std::abs(v.y) < 5 && std::abs(v.z) < 5)) {
      refuse_model(where + " has a scale out of range");
    }
  }
  for (const features::SteerableFeature& f : d.steerable) {
    if (f.type >= features::SteerableType::kCount || f.level >= features::kSteerableLevels ||
        f.point >= features::kPatternPoints) {
      refuse_model(where + " has a steerable feature out of range");
    }
  }
  const std::vector<int64_t> bounds = voxels::channel_bounds(model.space, model.channels);
  for (const features::HaarFeature& f : d.haar) {
    voxels::check_feature(features::boxes_of(f), bounds);
  }
  const size_t features = std::max(d.haar.size(), d.steerable.size());
  if (!d.is_forest()) return tree::check_ensemble(d.trees, features);
  if (d.forest.classes != 2 || !d.trees.nodes.empty()) {
    refuse_model(where + " has a forest of other than two classes, or beside boosting trees");
  }
  tree::check_forest(d.forest, features);
}

void check_gaussian(const pose::RelativeGaussian& g, const std::string& where) {
  bool finite = g.count >= 0;
  for (size_t i = 0; i < 9; ++i) {
    // Logarithms of ratios of edges come last.
    finite = finite && std::abs(g.mean[i]) < (i < 6 ? 1e5 : 20);
  }
  for (const double v : g.covariance) finite = finite && std::abs(v) < 1e10;
  Mat3 centre;
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) centre.m[i][j] = g.covariance[9 * i + j];
  if (!finite || (g.count > 0 && !(determinant(centre) > 1e-12))) {
    refuse_model(where + " has a Gaussian that is none");
  }
}

void check_correction(const pose::PoseCorrection& c, size_t structures, const std::string& where) {
  const size_t inputs = 3 + 9 * (structures - 1);
  bool fits = c.input_mean.size() == inputs && c.input_sd.size() == inputs &&
              c.weights.size() == 9 * (inputs + 1);
  fits = fits || (c.input_mean.empty() && c.input_sd.empty() && c.weights.empty());
  for (const double v : c.input_mean) fits = fits && std::abs(v) < 1e5;
  for (const double v : c.input_sd) fits = fits && v >= 0 && v < 1e5;
  for (const double v : c.weights) fits = fits && std::abs(v) < 1e4;
  if (!fits) refuse_model(where + " has a correction that is none");
}

void check_appearance(const Appearance& a, const std::string& where) {
  bool fits =
      (a.mean.empty() || a.mean.size() == kAppearancePoints) && a.weight.size() == a.mean.size();
  for (const double gain : a.gains) fits = fits && gain >= 0 && gain <= 1;
  for (const int32_t v : a.mean) fits = fits && v > -(1 << 24) && v < 1 << 24;
  for (const int32_t v : a.weight) fits = fits && v >= 0 && v < 1 << 24;
  if (!fits) refuse_model(where + " has an appearance that is none");
}

void check_structure(const Structure& s, int32_t index, const Model& model, bool is_finished) {
  const std::string where = "structure '" + s.name + "'";
  if (s.name.empty() || s.name.size() > 200) refuse_model("a structure has no name, or a long one");
  if (s.parent < -1 || s.parent >= index) refuse_model(where + " comes before its parent");
  try {
    check_pose(s.mean, where.c_str());
  } catch (const InputError& error) {
    refuse_model(error.what());
  }
  if (!std::all_of(s.symmetries.begin(), s.symmetries.end(), is_rotation)) {
    refuse_model(where + " has a symmetry that is no rotation");
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (!(s.mean.edges_mm[axis] >= 1e-3 && s.mean.edges_mm[axis] <= 1e5)) {
      refuse_model(where + " has a mean box that is none");
    }
  }
  check_gaussian(s.to_parent, where);
  check_gaussian(s.errors, where);
  check_correction(s.correction, model.structures.size(), where);
  check_appearance(s.appearance, where);
  if (!learning::is_valid(s.calibration)) refuse_model(where + " has a calibration that is none");
  const bool is_begun = is_finished || !s.detectors.empty();
  if (is_begun && s.parent >= 0 && s.to_parent.count == 0) {
    refuse_model(where + " knows no relative pose");
  }
  if (s.root_position.size() > 1) refuse_model(where + " has several root detectors");
  if (s.agreement_rad.size() != static_cast<size_t>(model.levels())) {
    refuse_model(where + " lacks the agreement of a level");
  }
  for (const double a : s.agreement_rad) {
    if (!(a >= 0 && a <= 7)) refuse_model(where + " has an angle of agreement that is none");
  }
  std::pair<int, int> before{-1, -1};
  for (const Detector& d : s.detectors) {
    check_detector(d, model, where);
    const std::pair<int, int> at{d.stage.level, static_cast<int>(d.stage.kind)};
    const bool begins_level = at.first != before.first;
    if (at <= before || begins_level != (d.stage.kind == StageKind::kPosition)) {
      refuse_model(where + " has its stages out of order");
    }
    before = at;
  }
  if (is_begun && (s.detectors.empty() || s.detectors.front().stage.level != 0)) {
    refuse_model(where + " has no detector of the coarsest level");
  }
  for (const Detector& d : s.root_position) {
    check_detector(d, model, where);
    if (d.stage.kind != StageKind::kPosition || d.stage.level != 0) {
      refuse_model(where + " has a root detector that is none");
    }
  }
}

}  // namespace

Vec3i Model::reach() const {
  Vec3i most{1, 1, 1};
  const auto add = [&](const std::vector<Detector>& detectors) {
    for (const Detector& d : detectors) {
      const Vec3i r = features::reach_along(d.haar);
      for (int axis = 0; axis < 3; ++axis) most[axis] = std::max(most[axis], r[axis]);
    }
  };
  for (const Structure& s : structures) {
    add(s.detectors);
    add(s.root_position);
  }
  return most;
}

void check_model(const Model& model, bool is_finished) {
  const Vec3d& mm = model.space.spacing_mm;
  if (!(mm.x >= 0.01 && mm.x <= 1000 && mm.x == mm.y && mm.x == mm.z)) {
    refuse_model("its voxels are no cubes of 0.01 to 1000 mm");
  }
  if (model.halvings < 0 || model.levels() > kMaximumLevels) refuse_model("it has too many levels");
  voxels::check_images(model.space, model.channels);
  if (!(model.prior_weight >= 0 && model.prior_weight <= 1000) || model.mean_of_first < 0) {
    refuse_model("it has a rule out of range");
  }
  if (model.structures.empty() || model.structures.size() > kMaximumStructures) {
    refuse_model("it has no structure, or more than " + std::to_string(kMaximumStructures));
  }
  for (size_t i = 0; i < model.structures.size(); ++i) {
    check_structure(model.structures[i], static_cast<int32_t>(i), model, is_finished);
  }
}

Volume<float> shape_of(const Grid& grid, const std::vector<uint32_t>& bits) {
  if (bits.empty()) return {};
  const Vec3i& n = grid.size;
  const double mm = grid.spacing_mm.x;
  bool possible = mm >= 1e-3 && mm <= 1e3;
  for (int axis = 0; axis < 3; ++axis) {
    possible = possible && n[axis] >= 2 && n[axis] <= 4096 && std::abs(grid.origin_mm[axis]) < 1e5;
  }
  if (!possible || static_cast<size_t>(int64_t{n.x} * n.y * n.z) != bits.size()) {
    refuse_model("it has a mean shape on a grid that is none");
  }
  auto shape = Volume<float>::unfilled(grid);
  for (size_t i = 0; i < bits.size(); ++i) {
    const auto d = std::bit_cast<float>(bits[i]);
    if (!(std::abs(d) < 1e6F)) refuse_model("it has a mean shape with a distance that is none");
    shape[static_cast<int64_t>(i)] = d;
  }
  return shape;
}

Pose grid_from_world(const Grid& grid, const Pose& pose) {
  const Quaternion turn = quaternion_of(grid.direction);
  return {rotate(conjugate(turn), pose.centre_mm - grid.origin_mm),
          canonical(conjugate(turn) * pose.rotation), pose.edges_mm};
}

Pose world_from_grid(const Grid& grid, const Pose& pose) {
  const Quaternion turn = quaternion_of(grid.direction);
  return {grid.origin_mm + rotate(turn, pose.centre_mm), canonical(turn * pose.rotation),
          pose.edges_mm};
}

}  // namespace larch::hdn
