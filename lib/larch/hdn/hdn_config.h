// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/features/steerable/steerable_set.h"
#include "larch/pose/hypotheses.h"
#include "larch/pose/truth.h"

namespace larch::hdn {

/// The detectors of a structure at a level.
enum class LevelStages : uint8_t {
  kAll = 0,
  kPosition,             ///< position alone
  kPositionOrientation,  ///< without scale
};
constexpr auto enum_names(LevelStages*) {
  return std::to_array<EnumName<LevelStages>>(
      {{LevelStages::kAll, "all"},
       {LevelStages::kPosition, "position"},
       {LevelStages::kPositionOrientation, "position-orientation"}});
}

enum class ScaleSet : uint8_t { kGrid = 0, kExamples = 1 };
constexpr auto enum_names(ScaleSet*) {
  return std::to_array<EnumName<ScaleSet>>(
      {{ScaleSet::kGrid, "grid"}, {ScaleSet::kExamples, "examples"}});
}

enum class Aggregation : uint8_t { kMode = 0, kMean = 1 };
constexpr auto enum_names(Aggregation*) {
  return std::to_array<EnumName<Aggregation>>(
      {{Aggregation::kMode, "mode"}, {Aggregation::kMean, "mean"}});
}

enum class Order : uint8_t { kFile = 0, kAuto = 1 };
constexpr auto enum_names(Order*) {
  return std::to_array<EnumName<Order>>({{Order::kFile, "file"}, {Order::kAuto, "auto"}});
}

/// A structure of the network.
struct StructureConfig {
  std::string name;
  std::vector<int> labels{};
  std::string parent{};
  std::vector<LevelStages> stages{};
  bool symmetric = false;

  template <class F>
  void fields(F&& f) {
    f(Field{"name", name, "name of the structure, in poses and markups"},
      Field{"labels", labels, "label values that are merged into it; none with a column poses"},
      Field{"parent", parent, "structure that is found first and tells where to search; or none"},
      Field{"stages", stages,
            "by level, coarsest first: all, position or position-orientation; empty: all, but no "
            "scale at the finest of several, whose voxels do not tell it better"},
      Field{"symmetric", symmetric,
            "rotations after which its mean shape looks the same make no difference"});
  }
};

/// All settings of a hierarchical detection network beside those that other models have.
struct HdnConfig {
  std::vector<StructureConfig> structures{};
  Order order = Order::kFile;
  double finest_spacing_mm = 1;
  int halvings = 2;
  pose::OrientationKind orientation = pose::OrientationKind::kFit;
  features::SteerableSet features = features::SteerableSet::kBase9;
  pose::RotationSet rotations = pose::RotationSet::kBall;
  std::vector<double> rotation_step_deg{10, 10, 5};
  std::vector<double> rotation_radius_deg{0, 15, 10};
  int rotation_count = 4000;
  ScaleSet scales = ScaleSet::kGrid;
  double scale_step = 1.1;
  std::vector<int> keep_first{200, 100, 100};
  std::vector<int> keep{100, 50, 50};
  Aggregation aggregation = Aggregation::kMode;
  int folds = 4;
  int positives_per_volume = 40;
  int negatives_per_volume = 400;
  double gain = 0.1;
  double offset = 0.05;
  double jitter_voxels = 0.5;
  double prior_weight = 1;
  bool fallback = true;

  template <class F>
  void fields(F&& f) {
    f(Field{"structures", structures,
            "the structures and their parents; empty: every label of dataset.json is one"}
          .example(R"([{"name": "hip", "labels": [1, 2]}, {"name": "head", "labels": [2], )"
                   R"("parent": "hip", "stages": ["all", "all", "position"]}])"),
      Field{"order", order, "file (parents as given) or auto (found by the training)"},
      Field{"finest_spacing_mm", finest_spacing_mm, "voxels of the finest level", 0.05, 100},
      Field{"halvings", halvings, "coarser levels, each with half the resolution", 0, 4},
      Field{"orientation", orientation,
            "fit (label maps are fitted to their mean) or none (axes of the patient)"},
      Field{"features", features, "steerable features: base9, or seed21 (US 2012/0069003)"},
      Field{"rotations", rotations,
            "rotations that are tried: ball (a grid), uniform (all), examples (of the training)"},
      Field{"rotation_step_deg", rotation_step_deg,
            "by level: step of the ball, or distance of examples", 1, 90}
          .not_empty(),
      Field{"rotation_radius_deg", rotation_radius_deg,
            "by level: radius of the ball; 0: as the training poses have it", 0, 180}
          .not_empty(),
      Field{"rotation_count", rotation_count, "with rotations uniform: how many", 24, 40000},
      Field{"scales", scales, "scales that are tried: grid or examples (of the training)"},
      Field{"scale_step", scale_step, "factor between scales of the coarsest level", 1.01, 2},
      Field{"keep_first", keep_first,
            "candidates kept at the coarsest level after position, orientation and scale", 1, 512}
          .lengths({3}),
      Field{"keep", keep, "the same at finer levels", 1, 512}.lengths({3}),
      Field{"aggregation", aggregation,
            "mode (the candidates that agree) or mean (of the best 100 near them)"},
      Field{"folds", folds,
            "detectors learn on what those of other cases found, in so many groups; 1: of all", 1,
            20},
      Field{"positives_per_volume", positives_per_volume, "boxes near the truth, at most", 1,
            100000},
      Field{"negatives_per_volume", negatives_per_volume, "nodes or boxes elsewhere", 1, 1000000},
      Field{"gain", gain, "training intensities vary by this share", 0, 0.5},
      Field{"offset", offset, "and by this share of the intensity range", 0, 0.5},
      Field{"jitter_voxels", jitter_voxels, "training boxes are moved by up to so much", 0, 4},
      Field{"prior_weight", prior_weight, "of the place that a parent suggests; 0: none", 0, 100},
      Field{"fallback", fallback,
            "children learn to be found everywhere, for cases whose parent is not found"});
  }
};

}  // namespace larch::hdn
