// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/shape/correspondence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/core/text.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/mesh/sphere_template.h"
#include "larch/pose/distance_map.h"
#include "larch/shape/shape_model.h"

namespace larch::shape {
namespace {

using mesh::Ring;
using mesh::TemplateLevel;

constexpr int kBlendSteps = 120;  ///< of the template, from the ellipsoid to the mean shape
constexpr int kSteps[mesh::kTemplateLevels] = {60, 20, 20};
constexpr double kFairing[mesh::kTemplateLevels] = {1, 0.5, 0.25};
constexpr double kMaximumDistance = 0.5;  ///< voxels, of an accepted case

/// A smoothed signed distance, and the size of its voxels.
struct Field {
  Volume<float> distance_mm;
  double voxel_mm = 1;

  pose::DistanceSample at(const Vec3d& place_mm) const {
    pose::DistanceSample sample = pose::sample_distance(distance_mm, place_mm);
    sample.gradient = distance_mm.grid().direction * sample.gradient;
    return sample;
  }
};

/// Gaussian smoothing with a standard deviation of one voxel; beyond the border the nearest counts.
Volume<float> smoothed(const Volume<float>& field) {
  constexpr std::array<double, 4> kWeights{0.3990503, 0.2420362, 0.0540056, 0.0044330};
  Volume<float> from = field, to = field;
  for (int axis = 0; axis < 3; ++axis) {
    const int32_t last = field.size()[axis] - 1;
    for (int64_t i = 0; i < field.voxels(); ++i) {
      const Vec3i at = field.grid().voxel(i);
      const auto value = [&](int offset) {
        Vec3i other = at;
        other[axis] = std::clamp(at[axis] + offset, 0, last);
        return static_cast<double>(from(other));
      };
      double sum = kWeights[0] * value(0);
      for (int k = 1; k < 4; ++k) sum += kWeights[static_cast<size_t>(k)] * (value(k) + value(-k));
      to[i] = static_cast<float>(sum);
    }
    std::swap(from, to);
  }
  return from;
}

Field field_of(const Volume<float>& distance_mm) {
  return {smoothed(distance_mm), exp_of(log_of(distance_mm.grid().voxel_volume_mm3()) / 3)};
}

/// x = centre + shape u takes the unit sphere to the ellipsoid with the moments of the inside.
struct Ellipsoid {
  Vec3d centre;
  Mat3 shape, inverse_shape;

  /// About the signed distance: to first order at the surface.
  pose::DistanceSample at(const Vec3d& place_mm) const {
    const Vec3d u = inverse_shape * (place_mm - centre);
    const double r = std::max(norm(u), 1e-9);
    const Vec3d gradient = inverse_shape * u / r;  // the matrix is symmetric
    const double slope = norm(gradient);
    return {(r - 1) / slope, gradient / slope};
  }
};

Ellipsoid ellipsoid_of(const Volume<float>& distance_mm) {
  double count = 0;
  Vec3d centre{};
  std::vector<double> moments(9, 0);
  std::vector<Vec3d> inside;
  for (int64_t i = 0; i < distance_mm.voxels(); ++i) {
    if (distance_mm[i] >= 0) continue;
    const Grid& grid = distance_mm.grid();
    inside.push_back(world_from_index(grid, grid.voxel(i).cast<double>()));
    centre += inside.back();
    count += 1;
  }
  if (count < 8) throw InputError("the mean shape of the structure has no inside");
  centre = centre / count;
  for (const Vec3d& p : inside) {
    const Vec3d d = p - centre;
    const double parts[] = {d.x, d.y, d.z};
    for (size_t a = 0; a < 3; ++a)
      for (size_t b = 0; b < 3; ++b) moments[3 * a + b] += parts[a] * parts[b] / count;
  }
  const Eigen eigen = symmetric_eigen(moments, 3);
  Ellipsoid out{centre, {{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}}, {}};
  for (size_t k = 0; k < 3; ++k) {
    const double length = std::sqrt(std::max(5 * eigen.values[k], 1e-12));
    for (size_t a = 0; a < 3; ++a)
      for (size_t b = 0; b < 3; ++b)
        out.shape.m[a][b] += length * eigen.vectors[k][a] * eigen.vectors[k][b];
  }
  out.inverse_shape = inverse(out.shape);
  return out;
}

/// Returns the middle of a ring: the mean of its vertices, and that of the centroids of its
/// triangles, weighted by their areas.
Vec3d middle_of(const Ring& ring, const std::vector<Vec3d>& x, size_t v) {
  Vec3d mean{}, centroid{};
  double areas = 0;
  for (int i = 0; i < ring.count; ++i) {
    const Vec3d &a = x[ring.neighbours[i]], &b = x[ring.neighbours[(i + 1) % ring.count]];
    const double area = norm(cross(a - x[v], b - x[v]));
    mean += a;
    centroid += (x[v] + a + b) * (area / 3);
    areas += area;
  }
  mean = mean / static_cast<double>(ring.count);
  return areas > 0 ? (mean + centroid / areas) * 0.5 : mean;
}

/// One step towards the zero surface of `sample(place)`.
template <class Sample>
void evolve(const TemplateLevel& level, const Sample& sample, double voxel_mm, double fairing,
            std::vector<Vec3d>& x) {
  const OneThread team;
  const auto count = static_cast<int>(level.rings.size());
  std::vector<Vec3d> move(x.size()), start(x.size()), part(x.size());
  for (size_t v = 0; v < x.size(); ++v) {
    const pose::DistanceSample phi = sample(x[v]);
    const double square = std::max(dot(phi.gradient, phi.gradient), 0.25);
    move[v] = phi.gradient * (-phi.mm / square);
    const double length = norm(move[v]);
    if (length > voxel_mm / 2) move[v] = move[v] * (voxel_mm / 2 / length);
  }
  mesh::implicit_step(team, level.rings.data(), count, 1, 0.5, move.data(), start.data(),
                      part.data());
  for (size_t v = 0; v < x.size(); ++v) x[v] += move[v];
  mesh::implicit_step(team, level.rings.data(), count, 2, fairing, x.data(), start.data(),
                      part.data());
  for (size_t v = 0; v < x.size(); ++v) {
    const Vec3d normal = mesh::vertex_normal(level.rings[v], x.data(), static_cast<int>(v));
    const Vec3d slide = middle_of(level.rings[v], x, v) - x[v];
    move[v] = (slide - normal * dot(slide, normal)) * 0.5;
  }
  for (size_t v = 0; v < x.size(); ++v) x[v] += move[v];
}

/// Goes down to the surface of a field, level by level; `shape` and `turn` as in add_vertices.
void descend(const Field& field, const std::vector<Vec3d>& shape, const Mat3& turn, double factor,
             std::vector<Vec3d>& x) {
  const auto sample = [&](const Vec3d& at) { return field.at(at); };
  for (int l = 0; l < mesh::kTemplateLevels; ++l) {
    const auto level = static_cast<size_t>(l);
    if (l > 0) mesh::add_vertices(l, shape, turn, x);
    for (int k = 0; k < kSteps[l]; ++k) {
      evolve(mesh::sphere_template().levels[level], sample, field.voxel_mm, kFairing[l] * factor,
             x);
    }
  }
}

/// The template on the mean shape.
std::vector<Vec3d> template_of(const Volume<float>& mean_distance_mm) {
  const Field field = field_of(mean_distance_mm);
  const Ellipsoid ellipsoid = ellipsoid_of(field.distance_mm);
  const mesh::SphereTemplate& sphere = mesh::sphere_template();
  std::vector<Vec3d> x;
  x.reserve(sphere.unit.size());
  for (int v = 0; v < mesh::kTemplateVertices[0]; ++v) {
    x.push_back(ellipsoid.centre + ellipsoid.shape * sphere.unit[static_cast<size_t>(v)]);
  }
  for (int k = 1; k <= kBlendSteps; ++k) {
    const double share = static_cast<double>(k) / kBlendSteps;
    const auto blend = [&](const Vec3d& at) {
      const pose::DistanceSample a = ellipsoid.at(at), b = field.at(at);
      return pose::DistanceSample{a.mm * (1 - share) + b.mm * share,
                                  a.gradient * (1 - share) + b.gradient * share};
    };
    evolve(sphere.levels[0], blend, field.voxel_mm, kFairing[0], x);
  }
  // A vertex of a finer level begins in the middle of its parents.
  const std::vector<Vec3d> flat(sphere.unit.size());
  descend(field, flat, {}, 1, x);
  return x;
}

int count_strictly_flipped(const Field& field, const std::vector<Vec3d>& x) {
  const auto& triangles = mesh::sphere_template().levels.back().triangles;
  return static_cast<int>(std::count_if(triangles.begin(), triangles.end(), [&](const Vec3i& t) {
    const Vec3d &a = x[static_cast<size_t>(t.x)], &b = x[static_cast<size_t>(t.y)],
                &c = x[static_cast<size_t>(t.z)];
    return dot(cross(b - a, c - a), field.at((a + b + c) / 3.0).gradient) <= 0;
  }));
}

/// Judges where the template has come to in a case.
void judge(const Volume<float>& distance_mm, const Field& field, CorrespondedCase& out) {
  double sum = 0;
  for (const Vec3d& at : out.vertices_mm) {
    sum += std::abs(pose::sample_distance(distance_mm, at).mm);
  }
  out.distance_voxels = sum / static_cast<double>(out.vertices_mm.size()) / field.voxel_mm;
  out.flipped = mesh::flipped_triangles(mesh::kTemplateLevels - 1, out.vertices_mm);
  out.flipped_strictly = count_strictly_flipped(field, out.vertices_mm);
  out.rejection.clear();
  if (!(out.distance_voxels < kMaximumDistance)) {
    out.rejection = formatted("%.2f voxels off the surface", out.distance_voxels);
  } else if (out.flipped > 0) {
    out.rejection = std::to_string(out.flipped) + " flipped triangles";
  }
}

CorrespondedCase correspond_case(const Volume<float>& distance_mm, const Pose& pose,
                                 const std::vector<Vec3d>& mean_mm, const Pose& mean_box) {
  const Field field = field_of(distance_mm);
  const Mat3 turn = turn_of(pose, mean_box.edges_mm);
  CorrespondedCase out;
  for (const double factor : {1.0, 4.0, 16.0}) {
    out.vertices_mm.clear();
    for (int v = 0; v < mesh::kTemplateVertices[0]; ++v) {
      out.vertices_mm.push_back(pose.centre_mm +
                                turn * (mean_mm[static_cast<size_t>(v)] - mean_box.centre_mm));
    }
    descend(field, mean_mm, turn, factor, out.vertices_mm);
    judge(distance_mm, field, out);
    if (out.rejection.empty()) break;
    out.is_retried = true;
  }
  if (!out.rejection.empty()) out.vertices_mm.clear();
  return out;
}

}  // namespace

Pose box_of_points(std::span<const Vec3d> points_mm) {
  Vec3d low = points_mm[0], high = low;
  for (const Vec3d& at : points_mm) widen(low, high, at);
  return {(low + high) * 0.5, {}, high - low};
}

Correspondence correspond(std::span<const Volume<float>> distances_mm, std::span<const Pose> poses,
                          const Volume<float>& mean_distance_mm, const Context& context) {
  Correspondence out;
  out.mean_mm = template_of(mean_distance_mm);
  const Pose box = box_of_points(out.mean_mm);
  out.cases.resize(distances_mm.size());
  parallel_for_each(context.threads, static_cast<int64_t>(distances_mm.size()), 1, [&](size_t i) {
    context.throw_if_stopped("stopped while meshes were fitted to label maps");
    out.cases[i] = correspond_case(distances_mm[i], poses[i], out.mean_mm, box);
  });
  return out;
}

}  // namespace larch::shape
