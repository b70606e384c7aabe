// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/measures.h"

namespace larch::mesh {

double signed_volume_mm3(const Mesh& surface) {
  if (surface.triangles.empty()) return 0;
  const auto at = [&](int v) { return surface.vertices_mm[static_cast<size_t>(v)]; };
  const Vec3d origin = at(surface.triangles[0].x);
  double sum = 0;
  for (const Vec3i& t : surface.triangles) {
    sum += dot(at(t.x) - origin, cross(at(t.y) - origin, at(t.z) - origin));
  }
  return sum / 6;
}

double area_mm2(const Mesh& surface) {
  const auto at = [&](int v) { return surface.vertices_mm[static_cast<size_t>(v)]; };
  double sum = 0;
  for (const Vec3i& t : surface.triangles) sum += norm(cross(at(t.y) - at(t.x), at(t.z) - at(t.x)));
  return sum / 2;
}

}  // namespace larch::mesh
