// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/volume.h"

namespace larch::levelset {

/// When a front that starts from phi_mm = 0 reaches each voxel's centre, in mm: it runs outwards at
/// one mm in a unit of time where `speed` (as it is stored) is 1, and never where it is not above
/// 0. Infinite where it does not come until `latest`, 0 inside. Fast marching with first
/// differences: Sethian, Proc. Natl. Acad. Sci. 93, 1996. Ties are taken in the order of the
/// voxels.
Volume<float> arrival_times(const Volume<float>& phi_mm, const Volume<int16_t>& speed,
                            double latest);

}  // namespace larch::levelset
