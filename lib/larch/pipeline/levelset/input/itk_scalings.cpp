// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/input/itk_scalings.h"

#include <cmath>

#include "larch/core/error.h"
#include "larch/levelset/step/time_step.h"

namespace larch::pipeline {

void ItkScalings::check(const levelset::LevelsetConfig& config, bool is_weight_given) const {
  if (!are_given()) return;
  if (!propagation || !curvature) {
    throw UsageError("--propagation and --curvature go together; --curvature-weight stands alone");
  }
  if (*propagation == 0 && *curvature == 0) {
    throw UsageError("--propagation and --curvature are both 0: nothing would move");
  }
  if (!config.lower || !config.upper) {
    throw UsageError(
        "--propagation and --curvature need --lower and --upper: ITK's speed is in units of the "
        "intensity");
  }
  // A file of the configuration may hold the default, as one that --print-config wrote does.
  if (is_weight_given || config.curvature_weight != levelset::LevelsetConfig{}.curvature_weight) {
    throw UsageError(
        "give either --curvature-weight or --propagation and --curvature, which stand for one: "
        "leave --curvature-weight out for ITK's scalings, or --propagation and --curvature");
  }
}

levelset::LevelsetConfig ItkScalings::applied(levelset::LevelsetConfig config,
                                              const Grid& grid) const {
  if (!are_given()) return config;
  const double half_width = (config.upper.value() - config.lower.value()) / 2;
  const double unit_mm = levelset::smallest_spacing_mm(grid.spacing_mm, grid.size);
  const double whole = *curvature + *propagation * half_width * unit_mm;
  if (!(whole > 0) || !std::isfinite(whole)) {
    throw UsageError(
        "--propagation and --curvature with this window are too small or too large to be one "
        "weight; give --curvature-weight");
  }
  config.curvature_weight = *curvature / whole;
  return config;
}

}  // namespace larch::pipeline
