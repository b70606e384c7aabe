// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "larch/data/mesh.h"
#include "larch/data/rgb_image.h"

namespace larch::picture {

/// A surface of surface_picture and the words above it.
struct SurfaceTile {
  Mesh surface;
  std::string title;
};

/// Shaded surfaces in rows of `columns`, all in one scale, each about its own middle, seen along y
/// (of LPS axes: from the front, with the patient's left on the right side).
RgbImage surface_picture(std::span<const SurfaceTile> tiles, int columns);

}  // namespace larch::picture
