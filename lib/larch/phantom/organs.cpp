// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/organs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/phantom/noise_math.h"
#include "larch/phantom/sample_volumes.h"

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

/// Returns a rotation by a unit quaternion (1, a, b, c) / norm.
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

/// The voxels of a case in the order of the file and in that of the patient (LPS), whose grid may
/// be turned. Both have the same centres.
struct Lattice {
  Grid file, patient;
  std::array<int, 3> patient_axis{};  ///< per axis of the file
  std::array<bool, 3> reversed{};     ///< per axis of the file

  Vec3i patient_voxel(const Vec3i& at) const {
    Vec3i out;
    for (int k = 0; k < 3; ++k) {
      out[patient_axis[k]] = reversed[k] ? file.size[k] - 1 - at[k] : at[k];
    }
    return out;
  }
};

/// Returns the rotation about an axis by an angle. The tangent of its half is rounded, so that the
/// last digit of the mathematical library does not matter.
Mat3 rotation_about(int axis, double angle_deg) {
  if (angle_deg == 0) return {};
  const double half = std::clamp(angle_deg, -179.99, 179.99) * (0.5 * 3.14159265358979323846 / 180);
  const double t = std::nearbyint(std::tan(half) * (1 << 24)) / (1 << 24);
  const bool half_turn = std::fabs(angle_deg) == 180;
  const double c = half_turn ? -1 : (1 - t * t) / (1 + t * t);
  const double s = half_turn ? 0 : 2 * t / (1 + t * t);
  const int j = (axis + 1) % 3, k = (axis + 2) % 3;
  Mat3 out;
  out.m[j][j] = out.m[k][k] = c;
  out.m[j][k] = -s;
  out.m[k][j] = s;
  return out;
}

Lattice make_lattice(const OrgansConfig& config) {
  Lattice lattice;
  Grid& file = lattice.file;
  Grid& patient = lattice.patient;
  for (int axis = 0; axis < 3; ++axis) {
    const size_t letter = std::string_view("LPSRAI").find(config.axes[static_cast<size_t>(axis)]);
    const int to = static_cast<int>(letter % 3);
    lattice.patient_axis[static_cast<size_t>(axis)] = to;
    lattice.reversed[static_cast<size_t>(axis)] = letter >= 3;
    file.size[axis] = patient.size[to] = config.size[static_cast<size_t>(axis)];
    file.spacing_mm[axis] = patient.spacing_mm[to] = config.spacing_mm[static_cast<size_t>(axis)];
  }
  const auto& turns = config.rotation_deg;
  patient.direction =
      rotation_about(2, turns[2]) * (rotation_about(1, turns[1]) * rotation_about(0, turns[0]));
  const Vec3d half{0.5 * (patient.size.x - 1) * patient.spacing_mm.x,
                   0.5 * (patient.size.y - 1) * patient.spacing_mm.y,
                   0.5 * (patient.size.z - 1) * patient.spacing_mm.z};
  patient.origin_mm = Vec3d{} - patient.direction * half;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const Vec3d column = patient.direction.column(lattice.patient_axis[k]);
    for (int row = 0; row < 3; ++row) {
      file.direction.m[row][axis] = lattice.reversed[k] ? 0 - column[row] : column[row];
    }
  }
  const Vec3d first = lattice.patient_voxel({0, 0, 0}).cast<double>();
  file.origin_mm = world_from_index(patient, first);
  return lattice;
}

struct Anatomy {
  Draw draw;
  Vec3d extent_mm;
  Blob body, column, cavity, distractor, organ;
  double gain, edge_mm, capsule_mm;
};

Anatomy make_anatomy(const Grid& grid, const Draw& draw) {
  Vec3d extent_mm{grid.size.x * grid.spacing_mm.x, grid.size.y * grid.spacing_mm.y,
                  grid.size.z * grid.spacing_mm.z};
  double voxel_mm = 0;
  for (int axis = 0; axis < 3; ++axis) {
    // The body of a 2-D image goes on before and behind it.
    if (grid.size[axis] == 1) {
      extent_mm[axis] = std::max(extent_mm[(axis + 1) % 3], extent_mm[(axis + 2) % 3]);
    } else {
      voxel_mm = std::max(voxel_mm, grid.spacing_mm[axis]);
    }
  }
  const auto blob = [&](const Shape& shape, uint64_t stream) {
    return place(shape, extent_mm, draw, stream);
  };
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

void check(const OrgansConfig& config) {
  std::array<int, 3> named{};
  for (const char letter : config.axes) {
    const size_t at = std::string_view("LPSRAI").find(letter);
    if (at != std::string_view::npos) ++named[at % 3];
  }
  if (config.axes.size() != 3 || named != std::array{1, 1, 1}) {
    throw UsageError("axes '" + config.axes +
                     "': give one letter per axis of the voxels, of L or R, P or A, and S or I, "
                     "such as LPS or RAI");
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    if (config.size[axis] >= 16 || (axis == 2 && config.size[axis] == 1)) continue;
    throw UsageError("size: " + std::to_string(config.size[axis]) + " along " + "xyz"[axis] +
                     " is too small, give at least 16 voxels, or 1 along z for a 2-D image");
  }
}

bool is_left_handed(const OrgansConfig& config) {
  check(config);
  return determinant(make_lattice(config).file.direction) < 0;
}

OrgansCase make_organs(const OrgansConfig& config, uint64_t seed, int number, int threads) {
  check(config);
  const Lattice lattice = make_lattice(config);
  const Grid& grid = lattice.file;
  OrgansCase out = blank_case<OrgansCase>(grid);
  const Anatomy anatomy = make_anatomy(lattice.patient, {seed, static_cast<uint64_t>(number)});
  const uint64_t noise_stream = anatomy.draw.number * 1000 + 30;
  parallel_for_each(threads, grid.voxels(), 8192, [&](int64_t i) {
    const Vec3i at = lattice.patient_voxel(grid.voxel(i));
    const Vec3d p = world_from_index(lattice.patient, at.cast<double>());
    const auto [value, in_organ] = tissue_at(anatomy, p);
    const Vec3d cell{2 * p.x / anatomy.extent_mm.x, 2 * p.y / anatomy.extent_mm.y,
                     2 * p.z / anatomy.extent_mm.z};
    const double field = 1 + config.bias * value_noise(seed, noise_stream + 1, cell);
    const double noise = config.noise * hash_normal(seed, noise_stream, lattice.patient.linear(at));
    const double seen = anatomy.gain * field * value + noise;
    out.image[i] = static_cast<int16_t>(std::nearbyint(std::clamp(seen, -1000.0, 4000.0)));
    out.labels[i] = in_organ ? 1 : 0;
  });
  return out;
}

LabelTable organs_label_table() {
  return {{1, "organ", {230, 60, 60}}};
}

}  // namespace larch::phantom
