// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/volume.h"

namespace larch {

/// A vector for each voxel: a displacement, a velocity, a gradient. Components are along the axes
/// of the world (LPS), in mm, whatever the direction of the grid. Files: io/image/image.h.
using VectorField = Volume<Vec3f>;

}  // namespace larch
