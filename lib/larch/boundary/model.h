// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/boundary/boundary_config.h"
#include "larch/boundary/confidence.h"
#include "larch/data/model_info.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/image/preprocess.h"
#include "larch/shape/shape_model.h"
#include "larch/tree/ensemble.h"

namespace larch::boundary {

/// The classifier of one level of the mesh.
struct Stage {
  int32_t halvings = 0;     ///< of the finest resolution
  double range_voxels = 4;  ///< displacements that are tried reach so far on either side
  std::vector<features::SteerableFeature> features{};
  tree::Ensemble trees{};
};

/// The boundary of one structure: its shape, and a classifier of places on its surface for each
/// level of the mesh (Birkbeck, Sofka, Zhou, CVPR workshops 2011, section 4.3).
struct Model {
  image::ModelSpace space;  ///< of the finest resolution; voxels are cubes
  std::string structure;
  std::vector<int32_t> labels{};
  RefineConfig refine{};
  shape::ShapeModel shape{};
  Volume<float> mean_distance_mm{};  ///< of the mean shape, to which label maps are fitted
  std::vector<Stage> stages{};       ///< level by level, 602 vertices first
  Confidence confidence{};
  ModelInfo info;

  int levels() const { return static_cast<int>(stages.size()); }
  int modes() const;  ///< that are used
  image::LevelScale scale(int level) const {
    return image::level_scale(space.spacing_mm.x, stages[static_cast<size_t>(level)].halvings);
  }
};

/// Checks every invariant that refinement relies on. Throws InputError that says which one failed.
void check_model(const Model& model);

}  // namespace larch::boundary
