// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/mesh.h"

namespace larch::mesh {

/// The volume (mm^3) inside a closed surface: negative where it is turned inside out.
double signed_volume_mm3(const Mesh& surface);
double area_mm2(const Mesh& surface);

}  // namespace larch::mesh
