// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/boundary/refine.h"

namespace larch::boundary {

/// Makes vertex i the same place of the structure wherever the refinement began: steps along
/// normals keep what a start is off along the surface. The shape of the model (pose, scale and
/// modes) is fitted to the surface, with distances along normals alone (Chen, Medioni, "Object
/// modelling by registration of multiple range images", Image and Vision Computing 10(3), 1992),
/// and its vertices are drawn onto the surface. Probabilities are interpolated. On the host, by one
/// thread, so that the result is the same for all devices. `refined`: of the model's finest level.
void slide(const Model& model, Refined& refined);

}  // namespace larch::boundary
