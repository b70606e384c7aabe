// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/surface_view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/picture/draw.h"

namespace larch::picture {
namespace {

constexpr int kSide = 220, kTitle = 18;  ///< pixels of a tile

Vec3d middle_of(const Mesh& surface, double& longest) {
  Vec3d low = surface.vertices_mm.at(0), high = low;
  for (const Vec3d& p : surface.vertices_mm) {
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], p[axis]);
      high[axis] = std::max(high[axis], p[axis]);
    }
  }
  longest = std::max({longest, high.x - low.x, high.z - low.z});
  return (low + high) * 0.5;
}

/// The triangle a, b, c in pixels, x and z on the picture and y the depth.
void draw_triangle(RgbImage& image, std::vector<double>& depth, const Vec3d& a, const Vec3d& b,
                   const Vec3d& c) {
  const Vec3d normal = cross(b - a, c - a);
  const double length = norm(normal);
  if (!(length > 0) || normal.y == 0) return;
  constexpr Vec3d kLight{-0.4, -0.7, -0.6};  // z grows downwards on the picture
  const double shade = std::abs(dot(normal, kLight)) / length;
  const auto grey = static_cast<uint8_t>(60 + 190 * std::min(shade, 1.0));
  const auto first = [](double p, double q, double r) {
    return static_cast<int>(std::ceil(std::min({p, q, r})));
  };
  const auto last = [](double p, double q, double r) {
    return static_cast<int>(std::floor(std::max({p, q, r})));
  };
  for (int z = std::max(first(a.z, b.z, c.z), 0);
       z <= std::min(last(a.z, b.z, c.z), image.height - 1); ++z) {
    for (int x = std::max(first(a.x, b.x, c.x), 0);
         x <= std::min(last(a.x, b.x, c.x), image.width - 1); ++x) {
      const auto side = [&](const Vec3d& p, const Vec3d& q) {
        return (q.x - p.x) * (z - p.z) - (q.z - p.z) * (x - p.x);
      };
      const double ab = side(a, b), bc = side(b, c), ca = side(c, a);
      if (!((ab >= 0 && bc >= 0 && ca >= 0) || (ab <= 0 && bc <= 0 && ca <= 0))) continue;
      const double y = a.y - (normal.x * (x - a.x) + normal.z * (z - a.z)) / normal.y;
      double& nearest =
          depth[static_cast<size_t>(z) * static_cast<size_t>(image.width) + static_cast<size_t>(x)];
      if (y >= nearest) continue;
      nearest = y;
      put(image, x, z, {grey, grey, static_cast<uint8_t>(grey * 4 / 5)});
    }
  }
}

}  // namespace

RgbImage surface_picture(std::span<const SurfaceTile> tiles, int columns) {
  const auto count = static_cast<int>(tiles.size());
  const int rows = (count + columns - 1) / columns;
  RgbImage image = make_canvas(columns * kSide, rows * (kSide + kTitle));
  double longest = 1e-9;
  std::vector<Vec3d> middles;
  for (const SurfaceTile& tile : tiles) middles.push_back(middle_of(tile.surface, longest));
  std::vector<double> depth(static_cast<size_t>(image.width) * static_cast<size_t>(image.height),
                            1e300);
  const double scale = 0.9 * kSide / longest;
  for (int i = 0; i < count; ++i) {
    const SurfaceTile& tile = tiles[static_cast<size_t>(i)];
    const int left = i % columns * kSide, top = i / columns * (kSide + kTitle);
    const auto place = [&](int v) {
      const Vec3d at =
          (tile.surface.vertices_mm[static_cast<size_t>(v)] - middles[static_cast<size_t>(i)]) *
          scale;
      return Vec3d{left + kSide / 2.0 + at.x, at.y, top + kTitle + kSide / 2.0 - at.z};
    };
    for (const Vec3i& t : tile.surface.triangles) {
      draw_triangle(image, depth, place(t.x), place(t.y), place(t.z));
    }
    draw_text(image, left + 4, top + 4, tile.title, 1, kWhite);
  }
  return image;
}

}  // namespace larch::picture
