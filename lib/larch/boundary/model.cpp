// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/model.h"

#include <algorithm>
#include <cmath>

#include "larch/mesh/sphere_template.h"
#include "larch/tree/check.h"
#include "larch/voxels/model.h"

namespace larch::boundary {
namespace {

using tree::refuse_model;

void check_stage(const Stage& stage, const std::string& where) {
  if (stage.halvings < 0 || stage.halvings > 4) refuse_model(where + " has no such resolution");
  if (!(stage.range_voxels >= 1 && stage.range_voxels <= 64)) {
    refuse_model(where + " searches too far, or not at all");
  }
  for (const features::SteerableFeature& f : stage.features) {
    if (f.type >= features::SteerableType::kCount || f.level >= features::kSteerableLevels ||
        f.point >= features::kVertexPoints) {
      refuse_model(where + " has a steerable feature out of range");
    }
  }
  tree::check_ensemble(stage.trees, stage.features.size());
}

void check_refine(const RefineConfig& r) {
  bool is_good = r.search_modes >= 1 && r.search_modes <= 3 && r.modes >= 0 && r.iterations >= 1 &&
                 r.iterations <= 20 && !r.lambda.empty() && !r.project.empty() && r.fairing >= 0 &&
                 r.fairing <= 10;
  for (const double v : r.lambda) is_good = is_good && v >= 0 && v <= 100;
  for (const double v : r.project) is_good = is_good && v >= 0 && v <= 1;
  if (!is_good) refuse_model("its rules of refinement are out of range");
}

}  // namespace

int Model::modes() const {
  return std::min(static_cast<int>(shape.modes.size()), refine.modes);
}

void check_model(const Model& model) {
  const Vec3d& mm = model.space.spacing_mm;
  if (!(mm.x >= 0.01 && mm.x <= 1000 && mm.x == mm.y && mm.x == mm.z)) {
    refuse_model("its voxels are no cubes of 0.01 to 1000 mm");
  }
  voxels::check_images(model.space, std::vector<image::ChannelSpec>(1));
  if (model.structure.empty() || model.structure.size() > 200) {
    refuse_model("its structure has no name, or a long one");
  }
  if (model.levels() > mesh::kTemplateLevels) refuse_model("it has too many levels");
  check_refine(model.refine);
  if (!is_valid(model.confidence)) refuse_model("its confidence is damaged");
  shape::check_shape(model.shape);
  for (size_t i = 0; i < model.stages.size(); ++i) {
    check_stage(model.stages[i], "level " + std::to_string(i));
  }
}

}  // namespace larch::boundary
