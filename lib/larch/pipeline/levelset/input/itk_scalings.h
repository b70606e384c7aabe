// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "larch/config/fields.h"
#include "larch/data/grid.h"
#include "larch/levelset/levelset_config.h"

namespace larch::pipeline {

/// The weights of ITK's ThresholdSegmentationLevelSetImageFilter in place of curvature_weight: a
/// group of flags (larch/cases/images.h).
///
/// A front of that filter has the speed p (eps - |I - T|) - k kappa in mm, with the propagation
/// scaling p, the curvature scaling k, and eps half the width of the window. In units of the
/// smallest spacing h that is s times (1 - a) D - a kappa, with s = p eps / h + k / h^2 and
///
///     a = k / (k + p eps h),
///
/// so that a surface at rest is the same, and a unit of ITK's time is s of ours. On the way there
/// the two differ: the time step is another, and the field is another's distance.
struct ItkScalings {
  std::optional<double> propagation{}, curvature{};

  template <class F>
  void fields(F&& f) {
    f(Field{"propagation", propagation,
            "with --curvature, lower and upper: propagation scaling of ITK's threshold level set",
            0.0, 1e6},
      Field{"curvature", curvature,
            "with --propagation: curvature scaling of ITK's; both stand for curvature_weight", 0.0,
            1e6});
  }
  bool are_given() const { return propagation || curvature; }
  /// Throws UsageError for one without the other, both 0, and a configuration without a window of
  /// its own or with a curvature_weight: `is_weight_given` says that its flag was given, which may
  /// be with the default.
  void check(const levelset::LevelsetConfig& config, bool is_weight_given) const;
  /// The configuration with the curvature_weight that the scalings stand for, if they are given.
  levelset::LevelsetConfig applied(levelset::LevelsetConfig config, const Grid& grid) const;
};

}  // namespace larch::pipeline
