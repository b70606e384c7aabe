// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/cell_cases.h"

#include <stdexcept>
#include <vector>

namespace larch::mesh {
namespace {

using Loop = std::vector<uint8_t>;

uint8_t edge_between(int corner0, int corner1) {
  const int difference = corner0 ^ corner1;
  const int axis = difference == 1 ? 0 : difference == 2 ? 1 : 2;
  const int lower = corner0 & corner1;
  return static_cast<uint8_t>(4 * axis + ((lower >> (axis + 1) % 3) & 1) +
                              2 * ((lower >> (axis + 2) % 3) & 1));
}

/// The corners of face 2 * axis + side, counter-clockwise seen from outside the cell.
std::array<int, 4> face_corners(int face) {
  const int axis = face / 2, side = face % 2;
  const int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3;
  const int base = side << axis;
  if (side == 1) return {base, base + u, base + u + v, base + v};
  return {base, base + v, base + u + v, base + u};
}

/// Bits of the two faces that an edge belongs to.
std::array<uint8_t, 12> faces_of_edges() {
  std::array<uint8_t, 12> faces{};
  for (int face = 0; face < 6; ++face) {
    const auto corners = face_corners(face);
    for (int k = 0; k < 4; ++k) {
      faces[edge_between(corners[k], corners[(k + 1) % 4])] |= static_cast<uint8_t>(1 << face);
    }
  }
  return faces;
}

/// The loops in which the surface meets the faces of the cell. Going round a face, each run of
/// inside corners is cut off by one segment, from the edge where the run is entered to the edge
/// where it is left. An edge is entered on one of its faces and left on the other, so the segments
/// link to loops, and the neighbouring cell sees the same segments reversed.
std::vector<Loop> trace_loops(int inside) {
  std::array<int, 12> next;
  next.fill(-1);
  for (int face = 0; face < 6; ++face) {
    const auto corners = face_corners(face);
    const auto is_inside = [&](int k) { return (inside >> corners[k % 4] & 1) != 0; };
    for (int k = 0; k < 4; ++k) {
      if (!is_inside(k) || is_inside(k + 3)) continue;
      int last = k;
      while (is_inside(last + 1)) ++last;
      next[edge_between(corners[(k + 3) % 4], corners[k])] =
          edge_between(corners[last % 4], corners[(last + 1) % 4]);
    }
  }
  std::vector<Loop> loops;
  for (int start = 0; start < 12; ++start) {
    if (next[start] < 0) continue;
    Loop loop;
    for (int edge = start; next[edge] >= 0;) {
      loop.push_back(static_cast<uint8_t>(edge));
      const int following = next[edge];
      next[edge] = -1;
      edge = following;
    }
    loops.push_back(loop);
  }
  return loops;
}

/// Triangulates the part first..last of a loop. A diagonal between two edges of one face would lie
/// in that face, where the neighbouring cell may put the same diagonal: then four triangles would
/// share an edge. Such diagonals are not used. Returns false if there is no other way.
bool triangulate(const Loop& loop, int first, int last, CellCase& out) {
  static const auto faces = faces_of_edges();
  if (last == first + 1) return true;
  const int size = static_cast<int>(loop.size());
  const auto allowed = [&](int i, int j) {
    return j == i + 1 || (i == 0 && j == size - 1) || (faces[loop[i]] & faces[loop[j]]) == 0;
  };
  for (int k = first + 1; k < last; ++k) {
    if (!allowed(first, k) || !allowed(k, last)) continue;
    const int before = out.triangles;
    if (triangulate(loop, first, k, out) && triangulate(loop, k, last, out)) {
      out.edges.at(out.triangles++) = {loop[first], loop[k], loop[last]};
      return true;
    }
    out.triangles = before;
  }
  return false;
}

std::array<CellCase, 256> derive_cases() {
  std::array<CellCase, 256> cases;
  for (int inside = 0; inside < 256; ++inside) {
    for (const Loop& loop : trace_loops(inside)) {
      if (!triangulate(loop, 0, static_cast<int>(loop.size()) - 1, cases[inside])) {
        throw std::logic_error("marching cubes: a loop cannot be triangulated");
      }
    }
  }
  return cases;
}

}  // namespace

const std::array<CellCase, 256>& cell_cases() {
  static const std::array<CellCase, 256> cases = derive_cases();
  return cases;
}

int edge_corner(int edge) {
  const int axis = edge / 4;
  return (edge & 1) << (axis + 1) % 3 | (edge >> 1 & 1) << (axis + 2) % 3;
}

}  // namespace larch::mesh
