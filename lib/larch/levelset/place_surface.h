// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/levelset/evolve/field.h"

namespace larch::levelset {

/// Voxels at the end of a run, on its image's grid.
struct EndVoxels {
  const Volume<float>& phi_mm;  ///< of one label
  const LabelVolume& labels;    ///< of all
  int32_t label = 1;
};

/// Where the surface of a label at rest lies between voxels. phi does not tell: each voxel has gone
/// to its end of the clamp by its own speed. Negative inside, where phi is; linear between the
/// centres of two voxels on different sides it is 0 at F_in / (F_in - F_out) of the way out, F
/// being the speed outwards of each,
///
///     F = (1 - a) D - a kappa + w A . n,
///
/// with kappa and the normal n of D, as far as its sign is that of the side, after a Gaussian
/// of 1.5 voxels of the smallest spacing. Where the speed of a voxel has the other sign, the
/// surface passes at it, as it is at rest by less than a front needs to get on; half way to it if a
/// limit or another label holds it. Voxels two steps along an axis from the other side have their
/// speed too, if it has their sign, and all others 1 or -1. Made on the host, the same for both
/// devices.
Volume<float> place_surface(const LevelsetField& field, const EndVoxels& end,
                            const Context& context);

}  // namespace larch::levelset
