// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/model_info.h"
#include "larch/features/haar.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/hdn/appearance.h"
#include "larch/hdn/stage_math.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/learning/calibration.h"
#include "larch/pose/correction.h"
#include "larch/pose/relative.h"
#include "larch/tree/ensemble.h"
#include "larch/tree/forest.h"

namespace larch::hdn {

constexpr int kMaximumLevels = 5;
constexpr int kMaximumStructures = 32;

constexpr auto enum_names(StageKind*) {
  return std::to_array<EnumName<StageKind>>({{StageKind::kPosition, "position"},
                                             {StageKind::kOrientation, "orientation"},
                                             {StageKind::kScale, "scale"}});
}

/// A stage of a structure at a level, its hypotheses and how many of them are kept: all of a
/// detector but the classifier.
struct Stage {
  StageKind kind = StageKind::kPosition;
  int32_t level = 0;  ///< 0: the coarsest
  int32_t keep = 1;
  std::vector<Quaternion> rotations{};  ///< orientation: tried in the frame of each candidate
  std::vector<Vec3d> log_scales{};      ///< scale: logarithms of factors of its edges
};

/// A stage with its classifier: boosting trees, or a decision forest of two classes, of which 1 is
/// the structure; on Haar features at nodes (positions of the coarsest level, where no box is known
/// yet) or on steerable features at boxes.
struct Detector {
  Stage stage{};
  std::vector<features::HaarFeature> haar{};
  std::vector<features::SteerableFeature> steerable{};
  tree::Ensemble trees{};  ///< has no nodes where there is a forest
  tree::Forest forest{};   ///< has no nodes where there are boosting trees

  bool is_forest() const { return !forest.nodes.empty(); }
};

/// A structure: a node of the hierarchical detection network.
struct Structure {
  std::string name;
  std::vector<int32_t> labels{};
  int32_t parent = -1;                   ///< index of an earlier structure; -1: none
  Pose mean{};                           ///< rotation and edges of the root search; LPS axes
  pose::RelativeGaussian to_parent{};    ///< as seen from the parent as it is found
  pose::RelativeGaussian errors{};       ///< of what is found, as seen from the truth
  std::vector<double> agreement_rad{};   ///< by level: angle within which candidates agree
  pose::PoseCorrection correction{};     ///< by what is found of all structures
  learning::Calibration calibration{};   ///< of the sum of the log odds of its stages
  Volume<float> mean_distance_mm{};      ///< of its mean shape (pose::PoseTruth); may be empty
  Appearance appearance{};               ///< fitted to the image where it is found
  std::vector<Quaternion> symmetries{};  ///< of its mean shape, in the frame of its box
  std::vector<Detector> detectors{};     ///< level by level, in the order of the stages
  /// The detector of a child that searches everywhere, for images whose parent is not found. At
  /// most one.
  std::vector<Detector> root_position{};
};

/// A hierarchical detection network (Sofka, Zhang, Zhou, Comaniciu, CVPR 2010) of marginal space
/// detectors (Zheng et al., IEEE TMI 27(11), 2008).
struct Model {
  image::ModelSpace space;  ///< of the finest level; voxels are cubes
  image::Padding padding = image::Padding::kClamp;
  int32_t halvings = 2;                        ///< level l has voxels of spacing * 2^(halvings - l)
  std::vector<image::ChannelSpec> channels{};  ///< of Haar features, relative to their level
  double prior_weight = 1;
  int32_t mean_of_first = 0;            ///< as pose::ClusterRule
  std::vector<Structure> structures{};  ///< parents before children
  ModelInfo info;

  int levels() const { return halvings + 1; }
  double spacing_mm(int level) const { return space.spacing_mm.x * (1 << (halvings - level)); }
  image::LevelScale scale(int level) const {
    return image::level_scale(space.spacing_mm.x, halvings - level);
  }
  /// Farthest reach of its Haar features along each axis: the padding that its channels need.
  Vec3i reach() const;
};

/// Mahalanobis^2 within which a child is looked for: 99 % of three degrees of freedom.
constexpr double kPriorLimit = 11.34;

/// Checks every invariant that detection relies on. Throws InputError that says which one failed.
/// `is_finished`: false for a model in training, some of whose structures have no detectors yet.
void check_model(const Model& model, bool is_finished = true);

/// Returns a volume of signed distances from its voxels' bits. Throws InputError for a grid that is
/// none, or another number of voxels; an empty one has no voxels.
Volume<float> shape_of(const Grid& grid, const std::vector<uint32_t>& bits);

/// Returns a pose in world coordinates as one in mm along the axes of a grid, from its first voxel,
/// and back.
Pose grid_from_world(const Grid& grid, const Pose& pose);
Pose world_from_grid(const Grid& grid, const Pose& pose);

}  // namespace larch::hdn
