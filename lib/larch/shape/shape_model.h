// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/pose.h"
#include "larch/mesh/sphere_template.h"
#include "larch/shape/shape_math.h"

namespace larch::shape {

/// Fewer cases make a mean without modes.
constexpr size_t kMinimumCases = 10;

/// How good a shape model is (Davies, Twining, Taylor, Statistical Models of Shape, 2008).
struct ShapeQuality {
  int cases = 0;
  int modes_95 = 0;  ///< compactness: modes that have 95 % of the variance
  double share = 0;  ///< of the variance, that the modes of the model have
  double generalisation_mm =
      0;  ///< root mean square distance of a case from all shapes without it, mean
  double specificity_mm = 0;  ///< of random shapes of the model to the nearest case
};

/// A mean shape and the modes of its variation (Cootes, Taylor, Cooper, Graham, "Active shape
/// models", CVIU 61(1), 1995) at the vertices of the template's finest level; those of coarser
/// levels are the first ones.
struct ShapeModel {
  std::vector<Vec3d> mean_mm;             ///< in the frame of its box, whose centre is the origin
  Vec3d edges_mm{1, 1, 1};                ///< of its box
  std::vector<double> variances_mm2;      ///< of the coefficients, descending
  std::vector<std::vector<Vec3d>> modes;  ///< of length 1 over all vertices
  ShapeQuality quality;
};

/// Generalised Procrustes analysis (rotation, translation, isotropic scale; the mean has the mean
/// size of the cases, and the mean orientation of `poses`, in whose frames they start) and the
/// principal components of what is left, at most kMaximumModes; none of fewer than kMinimumCases.
/// `cases_mm`: the vertices of each, world. There is at least one.
ShapeModel make_shape_model(std::span<const std::vector<Vec3d>> cases_mm,
                            std::span<const Pose> poses, const Context& context);

/// Returns the least-squares inverse of the first `modes` modes over the vertices of a level: row k
/// at [k * vertices].
std::vector<Vec3d> duals_of(const ShapeModel& model, int modes, int level);

/// The first modes one after another, each at all vertices of the mean, and the standard deviations
/// of their coefficients, as a ShapeView has them.
struct FlatModes {
  std::vector<Vec3d> modes;
  std::vector<double> deviations;
};
FlatModes flat_modes(const ShapeModel& model, int modes);

/// Throws InputError unless sizes fit and numbers are finite, and deviations positive.
void check_shape(const ShapeModel& model);

/// R diag(edges / mean edges) of a box of the frame of the mean.
Mat3 turn_of(const Pose& pose, const Vec3d& mean_edges_mm);

/// The first `count` vertices of the mean, placed by a box: x = c + R diag(edges / mean edges) m.
std::vector<Vec3d> placed_mean(const ShapeModel& model, const Pose& pose, int count);

}  // namespace larch::shape
