// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/data/mesh.h"

namespace larch::mesh {

/// Enclosed volume by the divergence theorem; negative if triangles are clockwise seen from
/// outside. Meaningful for closed surfaces.
double volume_mm3(const Mesh& surface);

double area_mm2(const Mesh& surface);

/// True when every edge belongs to exactly two triangles that run along it in opposite directions:
/// the surface is watertight and consistently oriented. The empty surface is closed.
bool is_closed(const Mesh& surface);

/// Vertices - edges + triangles, over the vertices that some triangle uses: 2 for each sphere, 0
/// for each torus.
int64_t euler_characteristic(const Mesh& surface);

}  // namespace larch::mesh
