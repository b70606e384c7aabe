// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/features/steerable/steerable_set.h"

namespace larch::boundary {

/// The choice of the first shape.
enum class ShapeSearch : uint8_t {
  kNone = 0,      ///< the mean
  kBoundary = 1,  ///< shapes of a few modes, scored by the boundary classifier
};
constexpr auto enum_names(ShapeSearch*) {
  return std::to_array<EnumName<ShapeSearch>>(
      {{ShapeSearch::kNone, "none"}, {ShapeSearch::kBoundary, "boundary"}});
}

enum class Smoothing : uint8_t {
  kDisplacements = 0,  ///< along the normals
  kPositions = 1,      ///< of the displaced vertices (Birkbeck et al. 2011)
};
constexpr auto enum_names(Smoothing*) {
  return std::to_array<EnumName<Smoothing>>(
      {{Smoothing::kDisplacements, "displacements"}, {Smoothing::kPositions, "positions"}});
}

/// How meshes are refined, part of a model.
struct RefineConfig {
  ShapeSearch search = ShapeSearch::kBoundary;
  int search_modes = 3;
  int modes = 30;
  int iterations = 4;
  Smoothing smoothing = Smoothing::kDisplacements;
  std::vector<double> lambda{2, 1, 0.5};
  std::vector<double> project{1, 1, 0.3};
  double fairing = 0.5;

  template <class F>
  void fields(F&& f) {
    f(Field{"search", search,
            "first shape: boundary (the best of a few modes, by the classifier) or none (the "
            "mean)"},
      Field{"search_modes", search_modes, "with search boundary: modes that vary", 1, 3},
      Field{"modes", modes, "modes of the shape that a mesh is projected on, at most", 0, 30},
      Field{"iterations", iterations, "of displacement and smoothing, on each level", 1, 20},
      Field{"smoothing", smoothing, "what is smoothed: displacements or positions"},
      Field{"lambda", lambda, "by level: strength of the smoothing", 0, 100}.not_empty(),
      Field{"project", project,
            "by level: share of the way to the nearest shape of the model; 0: none", 0, 1}
          .not_empty(),
      Field{"fairing", fairing, "strength of the fairing after each iteration", 0, 10});
  }
};

/// All settings of a boundary model beside those that other models have.
struct BoundaryConfig {
  std::vector<std::string> structures{};
  std::vector<int> labels{};
  double finest_spacing_mm = 1;
  std::vector<int> halvings{0, 0, 0};
  features::SteerableSet features = features::SteerableSet::kBase9;
  RefineConfig refine;
  int folds = 4;
  int starts = 2;
  double error_mm = 2;
  double error_deg = 8;
  double error_scale = 0.08;
  int positives_per_volume = 400;
  int negatives_per_volume = 800;
  double gain = 0.1;
  double offset = 0.05;

  template <class F>
  void fields(F&& f) {
    f(Field{"structures", structures,
            "names of the structures; empty: all of --start-model, without which there is one"},
      Field{"labels", labels,
            "of one structure: label values that are merged into it; empty: as --start-model says"},
      Field{"finest_spacing_mm", finest_spacing_mm, "voxels of the finest resolution", 0.05, 100},
      Field{"halvings", halvings,
            "by level of the mesh (602, 1202, 2402 vertices): how often the resolution is halved",
            0, 4}
          .lengths({1, 2, 3}),
      Field{"features", features, "steerable features: base9, or seed21 (US 2012/0069003)"},
      Field{"refine", refine, "how meshes are refined"},
      Field{"folds", folds,
            "finer levels learn on meshes of classifiers of other cases, in so many groups; 1: all",
            1, 20},
      Field{"starts", starts, "displaced poses of each case that the first level begins with", 1,
            20},
      Field{"error_mm", error_mm,
            "without --start-model: deviation of the centres of displaced poses", 0, 100},
      Field{"error_deg", error_deg, "without --start-model: deviation of their rotations", 0, 60},
      Field{"error_scale", error_scale, "without --start-model: deviation of ln of their edges", 0,
            1},
      Field{"positives_per_volume", positives_per_volume, "places on the boundary, at most", 1,
            100000},
      Field{"negatives_per_volume", negatives_per_volume, "places off the boundary, at most", 1,
            100000},
      Field{"gain", gain, "training intensities vary by this share", 0, 0.5},
      Field{"offset", offset, "and by this share of the intensity range", 0, 0.5});
  }
};

}  // namespace larch::boundary
