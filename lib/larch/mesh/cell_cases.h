// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace larch::mesh {

/// The cell between eight voxels. Corner c lies at (c & 1, c >> 1 & 1, c >> 2 & 1). Edge
/// 4 * axis + k runs along `axis` from the corner whose bits on axes (axis + 1) % 3 and
/// (axis + 2) % 3 are the bits 0 and 1 of k.

/// The triangles of a cell: indices of its edges, counter-clockwise seen from outside.
struct CellCase {
  int triangles = 0;
  std::array<std::array<uint8_t, 3>, 8> edges{};
};

/// One case for each set of inside corners (bit c = corner c is inside).
const std::array<CellCase, 256>& cell_cases();

/// The corner at the lower end of an edge.
int edge_corner(int edge);

}  // namespace larch::mesh
