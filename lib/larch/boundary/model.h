// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "larch/boundary/boundary_config.h"
#include "larch/data/model_info.h"
#include "larch/data/vec.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/image/preprocess.h"
#include "larch/learning/calibration.h"
#include "larch/shape/shape_model.h"
#include "larch/tree/ensemble.h"

namespace larch::boundary {

struct Model;
struct Refined;

/// Tells a mesh on the boundary of the structure from one elsewhere; more is worse. At the vertices
/// in the image, unless they are fewer than half: mean of -ln p, and share without a boundary. Of
/// the shape: mean deviations of the modes, distance from all shapes of the modes (mm), and |ln of
/// the size by that of the mean|.
constexpr size_t kMeasures = 5;
using Measures = std::array<double, kMeasures>;
Measures measures_of(const Model& model, const Refined& refined);

/// How a model knows whether it is in the right place; made of results of cases that were held out.
struct Confidence {
  std::vector<double> usual{}, deviations{};  ///< of right results, by measure; none: not known
  learning::Calibration calibration{};        ///< of minus the sum of the deviations that are worse

  bool is_known() const { return !usual.empty(); }
  /// Returns the probability that a result is right.
  double operator()(const Measures& measures) const;
};
/// Not known with fewer than ten right or five wrong results.
Confidence learn_confidence(std::span<const Measures> right, std::span<const Measures> wrong);

/// Tells whether it is one that learn_confidence can give.
bool is_valid(const Confidence& confidence);

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

/// The structures of a file. All see images in its space.
struct Models {
  image::ModelSpace space;
  std::vector<Model> structures;  ///< with names that differ
  ModelInfo info;                 ///< the digests are of the cases of one structure after another
};

/// Check every invariant that refinement relies on. Throw InputError that says which one failed.
void check_model(const Model& model);
void check_model(const Models& models);

}  // namespace larch::boundary
