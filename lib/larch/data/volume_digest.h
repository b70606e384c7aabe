// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/digest.h"
#include "larch/data/volume.h"

namespace larch {

/// Adds geometry and voxels of a volume to a digest; the frame of its world makes no difference.
template <class T>
void add_to_digest(const Volume<T>& volume, Sha256& sha) {
  const Grid& grid = volume.grid();
  sha.update(&grid.size, sizeof grid.size);
  sha.update(&grid.spacing_mm, sizeof grid.spacing_mm);
  sha.update(&grid.origin_mm, sizeof grid.origin_mm);
  sha.update(&grid.direction, sizeof grid.direction);
  sha.update(volume.data(), static_cast<size_t>(volume.voxels()) * sizeof(T));
}

}  // namespace larch
