// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/error.h"
#include "larch/regularise/graph_cut.h"

namespace larch::regularise {
namespace {

constexpr double kPi = 3.14159265358979323846;

Vec3d in_world(const Grid& grid, const Vec3i& offset) {
  return grid.direction * Vec3d{offset.x * grid.spacing_mm.x, offset.y * grid.spacing_mm.y,
                                offset.z * grid.spacing_mm.z};
}

/// One offset of each pair of opposite neighbours: 3 or 13; without those along an axis that has a
/// single voxel, if there is just one such axis.
std::vector<Vec3i> half_neighbourhood(const Grid& grid, int neighbours) {
  const int flat = (grid.size.x == 1) + (grid.size.y == 1) + (grid.size.z == 1);
  std::vector<Vec3i> out;
  for (int z = -1; z <= 1; ++z) {
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        const Vec3i offset{x, y, z};
        const bool forward = z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)));
        if (!forward || (neighbours == 6 && std::abs(x) + std::abs(y) + std::abs(z) > 1)) continue;
        bool leaves_plane = false;
        for (int axis = 0; axis < 3; ++axis) {
          leaves_plane |= flat == 1 && grid.size[axis] == 1 && offset[axis] != 0;
        }
        if (!leaves_plane) out.push_back(offset);
      }
    }
  }
  return out;
}

/// Adds `weight` to the directions nearest to `sample`, in equal parts if it is as near to several.
void add_sample(const std::vector<Vec3d>& directions, const Vec3d& sample, double weight,
                std::vector<double>& sums) {
  std::array<double, 13> cosine;
  double best = 0;
  for (size_t k = 0; k < directions.size(); ++k) {
    cosine[k] = std::fabs(dot(directions[k], sample));
    best = std::max(best, cosine[k]);
  }
  const auto is_best = [&](double c) { return c >= best * (1 - 1e-12); };
  const auto ties = std::count_if(cosine.begin(), cosine.begin() + directions.size(), is_best);
  for (size_t k = 0; k < directions.size(); ++k) {
    if (is_best(cosine[k])) sums[k] += weight / static_cast<double>(ties);
  }
}

/// Share of all lines that is nearest to each direction. The lines are sampled on three faces of a
/// cube (in a plane: on two sides of a square), each with its solid angle: that needs no function
/// that differs between mathematical libraries.
std::vector<double> angle_shares(const std::vector<Vec3d>& directions, const Mat3& frame,
                                 bool in_plane) {
  const int steps = in_plane ? 4096 : 128;
  std::vector<double> sums(directions.size(), 0);
  for (int i = 0; i < steps; ++i) {
    const double u = (2 * i + 1.0) / steps - 1;
    if (in_plane) {
      const double weight = 1 / (1 + u * u);
      add_sample(directions, frame.column(0) + u * frame.column(1), weight, sums);
      add_sample(directions, frame.column(1) + u * frame.column(0), weight, sums);
      continue;
    }
    for (int j = 0; j < steps; ++j) {
      const double v = (2 * j + 1.0) / steps - 1;
      const double squared = 1 + u * u + v * v;
      const double weight = 1 / (squared * std::sqrt(squared));
      add_sample(directions, {1, u, v}, weight, sums);
      add_sample(directions, {u, 1, v}, weight, sums);
      add_sample(directions, {u, v, 1}, weight, sums);
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (double& sum : sums) sum /= total;
  return sums;
}

/// Two orthonormal columns that span the plane of the directions; the third is not used.
Mat3 plane_frame(const std::vector<Vec3d>& directions) {
  const Vec3d a = directions[0];
  Vec3d b{};
  for (const Vec3d& d : directions) {
    const Vec3d rest = d - dot(a, d) * a;
    if (norm(rest) > norm(b)) b = rest;
  }
  b = b / norm(b);
  return {{{a.x, b.x, 0}, {a.y, b.y, 0}, {a.z, b.z, 0}}};
}

}  // namespace

std::vector<EdgeWeight> crofton_weights(const Grid& grid, int neighbours) {
  if (neighbours != 6 && neighbours != 26) {
    throw UsageError("graph cut: neighbours must be 6 or 26, not " + std::to_string(neighbours));
  }
  const std::vector<Vec3i> offsets = half_neighbourhood(grid, neighbours);
  std::vector<Vec3d> directions;
  for (const Vec3i& offset : offsets) {
    const Vec3d edge = in_world(grid, offset);
    directions.push_back(edge / norm(edge));
  }
  const bool in_plane = offsets.size() == 2 || offsets.size() == 4;
  const std::vector<double> share =
      angle_shares(directions, in_plane ? plane_frame(directions) : Mat3{}, in_plane);
  const double voxel_mm3 = grid.voxel_volume_mm3();
  std::vector<EdgeWeight> out;
  for (size_t k = 0; k < offsets.size(); ++k) {
    // phi_k / pi is 2 * share in space, and phi_k / 2 is pi / 2 * share in a plane.
    const double factor = (in_plane ? kPi / 2 : 2.0) * share[k];
    out.push_back({offsets[k], voxel_mm3 * factor / norm(in_world(grid, offsets[k]))});
  }
  return out;
}

}  // namespace larch::regularise
