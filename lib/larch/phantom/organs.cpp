// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/organs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
namespace {

constexpr double kTissue = 300, kAir = 20, kOrgan = 500, kColumn = 800, kCavity = 120;
constexpr double kCapsule = 180;
constexpr double kTexture = 190;  // times the standard deviation of value_noise: about 70

/// A bulged ellipsoid: the surface |q| = 1 + bulge(q / |q|), q = from_world * (p - centre) in units
/// of the radii.
struct Blob {
  Vec3d centre_mm, radii_mm;
  Mat3 from_world;
  std::array<double, 9> bulge;

  /// About the signed distance to the surface in mm, negative inside.
  double distance_mm(const Vec3d& p) const {
    const Vec3d d = from_world * (p - centre_mm);
    const Vec3d q{d.x / radii_mm.x, d.y / radii_mm.y, d.z / radii_mm.z};
    const double length = norm(q);
    const double scale_mm = std::min({radii_mm.x, radii_mm.y, radii_mm.z});
    if (length < 1e-6) return -scale_mm;
    const Vec3d u = q / length;
    const std::array<double, 9> terms{u.x,       u.y,       u.z,       u.x * u.y,      u.y * u.z,
                                      u.z * u.x, u.x * u.x, u.y * u.y, u.x * u.y * u.z};
    double surface = 1;
    for (size_t k = 0; k < terms.size(); ++k) surface += bulge[k] * terms[k];
    return (length - surface) * scale_mm;
  }
};

/// Draws of one case; each has its own stream.
struct Draw {
  uint64_t seed, number;
  double operator()(uint64_t stream, uint64_t index) const {
    return hash_signed(seed, number * 1000 + stream, index);
  }
};

/// A rotation by a unit quaternion (1, a, b, c) / norm.
Mat3 small_rotation(double a, double b, double c) {
  const double n = std::sqrt(1 + a * a + b * b + c * c);
  const double w = 1 / n, x = a / n, y = b / n, z = c / n;
  return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
           {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
           {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

struct Shape {
  Vec3d centre, radii;  ///< as shares of the volume's extent
  double bulge;
  double freedom;  ///< how much place, size and turn vary
};

Blob place(const Shape& shape, const Vec3d& extent_mm, const Draw& draw, uint64_t stream) {
  Blob blob;
  const double side = draw(0, 0) < 0 ? -1 : 1;  // the whole body is mirrored in half of the cases
  const Vec3d centre{side * shape.centre.x, shape.centre.y, shape.centre.z};
  for (int axis = 0; axis < 3; ++axis) {
    const double move = 0.04 * shape.freedom * draw(stream, axis);
    const double grow = 1 + 0.12 * shape.freedom * draw(stream, 3 + axis);
    blob.centre_mm[axis] = extent_mm[axis] * (centre[axis] + move);
    blob.radii_mm[axis] = extent_mm[axis] * shape.radii[axis] * grow;
  }
  const double turn = 0.2 * shape.freedom;
  blob.from_world =
      small_rotation(turn * draw(stream, 6), turn * draw(stream, 7), turn * draw(stream, 8));
  for (size_t k = 0; k < blob.bulge.size(); ++k) {
    blob.bulge[k] = shape.bulge * draw(stream, 9 + k);
  }
  return blob;
}

struct Anatomy {
  Draw draw;
  Vec3d extent_mm;
  Blob body, column, cavity, distractor, organ;
  double gain, edge_mm, capsule_mm;
};

Anatomy make_anatomy(const Grid& grid, const Draw& draw) {
  const Vec3d extent_mm{grid.size.x * grid.spacing_mm.x, grid.size.y * grid.spacing_mm.y,
                        grid.size.z * grid.spacing_mm.z};
  const auto blob = [&](const Shape& shape, uint64_t stream) {
    return place(shape, extent_mm, draw, stream);
  };
  const double voxel_mm = std::max({grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z});
  return {draw,
          extent_mm,
          blob({{0, 0, 0}, {0.47, 0.42, 0.75}, 0.03, 0.3}, 1),
          blob({{0, 0.27, 0}, {0.08, 0.08, 3}, 0.0, 0.5}, 2),
          blob({{0.02, -0.27, 0.12}, {0.12, 0.08, 0.16}, 0.08, 1}, 3),
          blob({{0.22, 0.02, 0.03}, {0.15, 0.17, 0.24}, 0.08, 1}, 4),
          blob({{-0.19, -0.01, 0.0}, {0.16, 0.2, 0.24}, 0.12, 1}, 5),
          1 + 0.15 * draw(6, 0),
          voxel_mm,
          1.2 * voxel_mm};
}

/// Goes from `before` to `inside` over about a voxel across the surface (partial volume).
double blend(double before, double inside, double distance_mm, double edge_mm) {
  const double share = std::clamp(0.5 - distance_mm / edge_mm, 0.0, 1.0);
  return before + share * (inside - before);
}

/// Intensity without noise, and whether the place is in the organ.
std::pair<double, bool> tissue_at(const Anatomy& a, const Vec3d& p) {
  const auto texture = [&](uint64_t stream, double cell_mm) {
    return kTexture * value_noise(a.draw.seed, a.draw.number * 1000 + stream, p / cell_mm);
  };
  const double edge_mm = a.edge_mm, base_mm = 3 * edge_mm;
  double value = blend(kAir, kTissue + 0.3 * texture(20, base_mm), a.body.distance_mm(p), edge_mm);
  value = blend(value, kCavity, a.cavity.distance_mm(p), edge_mm);
  value = blend(value, kColumn + 0.5 * texture(21, base_mm), a.column.distance_mm(p), edge_mm);
  value = blend(value, kOrgan + texture(22, 0.75 * edge_mm), a.distractor.distance_mm(p), edge_mm);
  const double organ_mm = a.organ.distance_mm(p);
  value = blend(value, kCapsule, organ_mm - a.capsule_mm, edge_mm);
  value = blend(value, kOrgan + texture(23, 2.5 * edge_mm), organ_mm, edge_mm);
  return {value, organ_mm < 0};
}

}  // namespace

OrgansCase make_organs(const OrgansConfig& config, uint64_t seed, int number, int threads) {
  Grid grid;
  for (int axis = 0; axis < 3; ++axis) {
    grid.size[axis] = config.size[axis];
    grid.spacing_mm[axis] = config.spacing_mm[axis];
    grid.origin_mm[axis] = -0.5 * (grid.size[axis] - 1) * grid.spacing_mm[axis];
  }
  OrgansCase out;
  try {
    out = {Volume<int16_t>(grid), LabelVolume(grid)};
  } catch (const std::bad_alloc&) {
    throw MemoryError("a sample of " + describe(grid) + " needs " +
                      std::to_string((6 * grid.voxels()) >> 20) + " MiB; choose a smaller size");
  }
  const Anatomy anatomy = make_anatomy(grid, {seed, static_cast<uint64_t>(number)});
  const uint64_t noise_stream = anatomy.draw.number * 1000 + 30;
  parallel_for(threads, grid.voxels(), 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Vec3d p = world_from_index(grid, grid.voxel(i).cast<double>());
      const auto [value, in_organ] = tissue_at(anatomy, p);
      const Vec3d cell{2 * p.x / anatomy.extent_mm.x, 2 * p.y / anatomy.extent_mm.y,
                       2 * p.z / anatomy.extent_mm.z};
      const double field = 1 + config.bias * value_noise(seed, noise_stream + 1, cell);
      const double noise = config.noise * hash_normal(seed, noise_stream, i);
      const double seen = anatomy.gain * field * value + noise;
      out.image[i] = static_cast<int16_t>(std::nearbyint(std::clamp(seen, -1000.0, 4000.0)));
      out.labels[i] = in_organ ? 1 : 0;
    }
  });
  return out;
}

LabelTable organs_label_table() {
  return {{1, "organ", {230, 60, 60}}};
}

}  // namespace larch::phantom
