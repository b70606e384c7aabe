// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/truth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/filters/distance.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pose/mean_rotation.h"

namespace larch::pose {
namespace {

constexpr int kRounds = 8;          ///< of mean shape and fits
constexpr int kSearchedRounds = 3;  ///< the first ones, in which each fit has several starts
constexpr int kSteps = 20;          ///< of a fit
constexpr int kSearchSteps = 6;     ///< of each of its starts
constexpr double kSearchTurn = 25 / 57.295779513082323;  ///< radians between starts
constexpr int64_t kMostVertices = 20000;                 ///< that decide the box
constexpr size_t kFitVertices = 2000;                    ///< at most, that are fitted
constexpr size_t kFitPerSearch = 8;                      ///< and of those for each one in a search
constexpr int32_t kLongest = 96;  ///< voxels along the longest edge of a distance map

/// x = centre_mm + scale R m takes the frame of the mean shape to the world.
struct Similarity {
  Vec3d centre_mm;
  Quaternion rotation;
  double scale = 1;
};

/// Signed distances of a shape, negative inside.
struct DistanceField {
  Volume<float> mm;
  Mat3 index_from_mm;  ///< of a difference of positions

  explicit DistanceField(Volume<float> distance_mm = {}) : mm(std::move(distance_mm)) {
    const Grid& grid = mm.grid();
    Mat3 mm_from_index = grid.direction;
    for (auto& row : mm_from_index.m)
      for (int axis = 0; axis < 3; ++axis) row[axis] *= grid.spacing_mm[axis];
    index_from_mm = inverse(mm_from_index);
  }
};

struct Sample {
  double mm;
  Vec3d gradient;
};

/// Linear interpolation; beyond the grid, the distance to the grid is added to the value there.
Sample sample(const DistanceField& field, const Vec3d& at_mm) {
  const Grid& grid = field.mm.grid();
  const Vec3d wanted = field.index_from_mm * (at_mm - grid.origin_mm);
  Vec3d index, slope;
  Vec3i low;
  for (int axis = 0; axis < 3; ++axis) {
    index[axis] = std::clamp(wanted[axis], 0.0, grid.size[axis] - 1.0);
    low[axis] = std::min(static_cast<int32_t>(index[axis]), grid.size[axis] - 2);
  }
  const Vec3d up = index - low.cast<double>(), down = Vec3d{1, 1, 1} - up;
  double mm = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3i bit{corner & 1, corner >> 1 & 1, corner >> 2};
    const double value = field.mm(low + bit);
    const Vec3d weight{bit.x ? up.x : down.x, bit.y ? up.y : down.y, bit.z ? up.z : down.z};
    mm += weight.x * weight.y * weight.z * value;
    slope.x += weight.y * weight.z * (bit.x ? value : -value);
    slope.y += weight.x * weight.z * (bit.y ? value : -value);
    slope.z += weight.x * weight.y * (bit.z ? value : -value);
  }
  Vec3d gradient{0, 0, 0};
  for (int axis = 0; axis < 3; ++axis) {
    const double share = wanted[axis] == index[axis] ? slope[axis] : 0;
    const auto& row = field.index_from_mm.m[axis];
    gradient += Vec3d{row[0], row[1], row[2]} * share;
  }
  if (wanted == index) return {mm, gradient};
  const Vec3d beyond = at_mm - world_from_index(grid, index);
  const double far = norm(beyond);
  return {mm + far, gradient + beyond / far};
}

/// Where a shape is and how large: the cube root of its volume.
struct Moments {
  Vec3d centroid_mm;
  double size_mm;
};
Moments moments_of(const DistanceField& field) {
  const Grid& grid = field.mm.grid();
  Vec3d sum;
  double inside = 0;
  for (int64_t i = 0; i < field.mm.voxels(); ++i) {
    if (field.mm[i] >= 0) continue;
    sum += grid.voxel(i).cast<double>();
    inside += 1;
  }
  const double volume_mm3 = inside * grid.voxel_volume_mm3();
  return {world_from_index(grid, sum / inside), exp_of(log_of(volume_mm3) / 3)};
}

/// A structure of one case.
struct Shape {
  std::vector<Vec3d> surface_mm;  ///< vertices, evenly chosen
  DistanceField distance;
  bool touches_border = false;
  double voxel_mm = 0;  ///< cube root of a voxel's volume
};

/// The signed distances of the voxels from `low` to `high` of a mask and of a margin around them,
/// of which every stride-th is looked at.
Volume<float> signed_distance(const Volume<uint8_t>& mask, const Vec3i& low, const Vec3i& high) {
  const Vec3i extent = high - low + Vec3i{1, 1, 1};
  const int32_t margin = 3 + std::min(std::max({extent.x, extent.y, extent.z}), kLongest) / 6;
  Grid grid = mask.grid();
  Vec3i stride;
  for (int axis = 0; axis < 3; ++axis) {
    stride[axis] = (extent[axis] + kLongest - 1) / kLongest;
    grid.size[axis] = (extent[axis] - 1) / stride[axis] + 1 + 2 * margin;
    grid.spacing_mm[axis] *= stride[axis];
  }
  grid.origin_mm = world_from_index(mask.grid(), (low - stride * margin).cast<double>());
  Volume<uint8_t> inside(grid), outside(grid);
  for (int64_t i = 0; i < inside.voxels(); ++i) {
    Vec3i at = grid.voxel(i) - Vec3i{margin, margin, margin};
    for (int axis = 0; axis < 3; ++axis) at[axis] = low[axis] + at[axis] * stride[axis];
    inside[i] = mask.grid().contains(at) && mask(at) != 0;
    outside[i] = inside[i] == 0;
  }
  // Each of the two is zero half a voxel off the surface, on its own side.
  Volume<float> distance = filters::signed_distance_mm(inside);
  const Volume<float> complement = filters::signed_distance_mm(outside);
  for (int64_t i = 0; i < distance.voxels(); ++i)
    distance[i] = 0.5F * (distance[i] - complement[i]);
  return distance;
}

/// Throws InputError for a mask of fewer than 8 voxels.
Shape shape_of(const Volume<uint8_t>& mask, const std::string& name) {
  Vec3i low = mask.size(), high{-1, -1, -1};
  int64_t count = 0;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    const Vec3i at = mask.grid().voxel(i);
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], at[axis]);
      high[axis] = std::max(high[axis], at[axis]);
    }
    ++count;
  }
  if (count < 8) {
    throw InputError(name + " has " + std::to_string(count) +
                     " voxels, and a pose needs 8 or more: leave the case out");
  }
  Shape shape;
  for (int axis = 0; axis < 3; ++axis) {
    shape.touches_border |= low[axis] == 0 || high[axis] == mask.size()[axis] - 1;
  }
  shape.voxel_mm = exp_of(log_of(mask.grid().voxel_volume_mm3()) / 3);
  shape.distance = DistanceField(signed_distance(mask, low, high));
  const std::vector<Vec3d> vertices = mesh::marching_cubes(mask, Context{}).vertices_mm;
  const auto all = static_cast<int64_t>(vertices.size()), used = std::min(all, kMostVertices);
  for (int64_t i = 0; i < used; ++i)
    shape.surface_mm.push_back(vertices[static_cast<size_t>(i * all / used)]);
  return shape;
}

/// The extents of points along axes, as a box.
Pose box_of(std::span<const Vec3d> points_mm, const Quaternion& axes) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Vec3d low{kFar, kFar, kFar}, high{-kFar, -kFar, -kFar};
  for (const Vec3d& point : points_mm) {
    const Vec3d at = rotate(conjugate(axes), point);
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = std::min(low[axis], at[axis]);
      high[axis] = std::max(high[axis], at[axis]);
    }
  }
  return {rotate(axes, (low + high) * 0.5), axes, high - low};
}

// A change of a similarity has seven parts: translation and rotation vector in the frame of the
// mean shape, and the logarithm of the scale.
constexpr int kParts = 7;

/// The squared residuals (mm of the world) of points, and the parabola that they have for small
/// changes of the similarity.
struct Parabola {
  double cost = 0;
  double slope[kParts] = {}, curve[kParts][kParts] = {};
  double radius_square_mm2 = 0;  ///< summed, in the frame of the mean shape
};

Parabola parabola_at(const Similarity& at, const DistanceField& mean,
                     std::span<const Vec3d> surface_mm, size_t every) {
  Parabola sum;
  const Mat3 turn = rotation_matrix(conjugate(at.rotation));
  for (size_t i = 0; i < surface_mm.size(); i += every) {
    const Vec3d m = turn * (surface_mm[i] - at.centre_mm) / at.scale;
    const Sample phi = sample(mean, m);
    const Vec3d g = phi.gradient * -at.scale, h = cross(m, g);
    const double residual = at.scale * phi.mm;
    const double part[kParts] = {g.x, g.y, g.z, h.x, h.y, h.z, residual + dot(g, m)};
    sum.cost += residual * residual;
    sum.radius_square_mm2 += dot(m, m);
    for (int a = 0; a < kParts; ++a) {
      sum.slope[a] += part[a] * residual;
      for (int b = 0; b <= a; ++b) sum.curve[a][b] += part[a] * part[b];
    }
  }
  return sum;
}

/// Where the parabola, damped, has its minimum: Cholesky's factors of its matrix.
Similarity stepped(const Similarity& from, Parabola p, double damping, double points) {
  double step[kParts];
  for (int a = 0; a < kParts; ++a) {
    p.curve[a][a] += damping * from.scale * from.scale * (a < 3 ? points : p.radius_square_mm2);
    for (int b = 0; b <= a; ++b) {
      for (int k = 0; k < b; ++k) p.curve[a][b] -= p.curve[a][k] * p.curve[b][k];
      p.curve[a][b] = a == b ? std::sqrt(p.curve[a][a]) : p.curve[a][b] / p.curve[b][b];
    }
    step[a] = -p.slope[a];
    for (int k = 0; k < a; ++k) step[a] -= p.curve[a][k] * step[k];
    step[a] /= p.curve[a][a];
  }
  for (int a = kParts; a-- > 0;) {
    for (int k = a + 1; k < kParts; ++k) step[a] -= p.curve[k][a] * step[k];
    step[a] /= p.curve[a][a];
  }
  const Vec3d move = rotate(from.rotation, {step[0], step[1], step[2]}) * from.scale;
  return {from.centre_mm + move, from.rotation * from_rotation_vector({step[3], step[4], step[5]}),
          from.scale * exp_of(step[6])};
}

struct Fit {
  Similarity at;
  double cost;
};
/// Levenberg's method with a fixed number of steps, on every `every`-th point.
Fit descend(Similarity at, const DistanceField& mean, std::span<const Vec3d> surface_mm,
            size_t every, int steps) {
  const auto points = static_cast<double>((surface_mm.size() - 1) / every + 1);
  double damping = 1e-3;
  Parabola here = parabola_at(at, mean, surface_mm, every);
  for (int i = 0; i < steps; ++i) {
    const Similarity next = stepped(at, here, damping, points);
    const Parabola there = parabola_at(next, mean, surface_mm, every);
    const bool is_lower = there.cost < here.cost;
    damping = is_lower ? std::max(damping * 0.2, 1e-6) : damping * 10;
    if (!is_lower) continue;
    at = next;
    here = there;
  }
  return {at, here.cost};
}

/// The fit of a case to the mean shape, from the fit so far. The search starts from turns of that,
/// with centroids and volumes made to agree, and goes on from the best.
Similarity fit(const Shape& shape, Similarity at, const DistanceField& mean, bool search) {
  const size_t every = (shape.surface_mm.size() + kFitVertices - 1) / kFitVertices;
  if (search) {
    const Moments to = moments_of(mean), own = moments_of(shape.distance);
    double lowest = std::numeric_limits<double>::infinity();
    const Quaternion before = at.rotation;
    for (int i = 0; i < 27; ++i) {
      const Vec3d turn = Vec3i{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1}.cast<double>() * kSearchTurn;
      Similarity start{{}, before * from_rotation_vector(turn), own.size_mm / to.size_mm};
      start.centre_mm = own.centroid_mm - rotate(start.rotation, to.centroid_mm) * start.scale;
      const Fit found = descend(start, mean, shape.surface_mm, every * kFitPerSearch, kSearchSteps);
      if (found.cost >= lowest) continue;
      lowest = found.cost;
      at = found.at;
    }
  }
  at = descend(at, mean, shape.surface_mm, every, kSteps).at;
  return {at.centre_mm, canonical(at.rotation), at.scale};
}

/// The box of a case along the axes of its fit, and its residual unless the mean is empty.
CasePose pose_of(const Shape& shape, const Similarity& at, const DistanceField& mean) {
  const Pose box = box_of(shape.surface_mm, at.rotation);
  double sum = 0;
  for (const Vec3d& p : shape.surface_mm) {
    if (mean.mm.empty()) break;
    const Vec3d m = rotate(conjugate(at.rotation), p - at.centre_mm) / at.scale;
    sum += std::abs(sample(mean, m).mm) * at.scale;
  }
  return {box, sum / static_cast<double>(shape.surface_mm.size()), shape.touches_border};
}

double mean_voxel_mm(std::span<const Shape> shapes) {
  double sum = 0;
  for (const Shape& shape : shapes) sum += shape.voxel_mm;
  return sum / static_cast<double>(shapes.size());
}

/// An isotropic grid in the frame of the mean shape that holds the cases as they are fitted.
Grid mean_grid(std::span<const Shape> shapes, std::span<const Similarity> fits) {
  std::vector<Vec3d> corners;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Similarity& at = fits[i];
    const Pose box = box_of(shapes[i].surface_mm, at.rotation);
    for (int c = 0; c < 8; ++c)
      corners.push_back(rotate(conjugate(at.rotation), corner(box, c) - at.centre_mm) / at.scale);
  }
  const Pose all = box_of(corners, Quaternion{});
  const Vec3d& edges = all.edges_mm;
  const double longest = std::max({edges.x, edges.y, edges.z});
  const double spacing = std::max(mean_voxel_mm(shapes), longest / kLongest), margin = longest / 8;
  Grid grid;
  grid.spacing_mm = {spacing, spacing, spacing};
  for (int axis = 0; axis < 3; ++axis)
    grid.size[axis] = 2 + static_cast<int32_t>(std::ceil((edges[axis] + 2 * margin) / spacing));
  grid.origin_mm = all.centre_mm - (grid.size.cast<double>() - Vec3d{1, 1, 1}) * (spacing / 2);
  return grid;
}

DistanceField mean_distance(std::span<const Shape> shapes, std::span<const Similarity> fits,
                            const Context& context) {
  auto mean = Volume<float>::unfilled(mean_grid(shapes, fits));
  parallel_for(context.threads, mean.voxels(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Vec3d m = world_from_index(mean.grid(), mean.grid().voxel(i).cast<double>());
      double sum = 0;
      for (size_t k = 0; k < shapes.size(); ++k) {
        const Vec3d world_mm = fits[k].centre_mm + rotate(fits[k].rotation, m) * fits[k].scale;
        sum += sample(shapes[k].distance, world_mm).mm / fits[k].scale;
      }
      mean[i] = static_cast<float>(sum / static_cast<double>(shapes.size()));
    }
  });
  return DistanceField(std::move(mean));
}

/// Turns and scales the frame of the mean shape, to which `fits` lead, so that their mean rotation
/// becomes the identity and their mean logarithm of the scale 0; `before` stay fits to that frame.
void fix_gauge(std::span<Similarity> fits, std::span<Similarity> before) {
  RotationSum rotations;
  double log_scale = 0;
  for (const Similarity& fit : fits) {
    rotations.add(fit.rotation, 1);
    log_scale += log_of(fit.scale) / static_cast<double>(fits.size());
  }
  const Quaternion back = conjugate(mean_rotation(rotations));
  for (const std::span<Similarity> turned : {fits, before}) {
    for (Similarity& fit : turned) {
      fit.rotation = canonical(fit.rotation * back);
      fit.scale *= exp_of(-log_scale);
    }
  }
}

std::vector<Symmetry> symmetries_of(const DistanceField& mean, double voxel_mm) {
  const auto inside_up = mapped<float>(mean.mm, [](float mm) { return -mm; });
  const std::vector<Vec3d> surface = mesh::marching_cubes(inside_up, 0, Context{}).vertices_mm;
  const Vec3d middle = box_of(surface, Quaternion{}).centre_mm;
  std::vector<Symmetry> found;
  for (int i = 1; i < 6 * 8; ++i) {
    constexpr int kOrders[6][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1},
                                   {0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
    Mat3 turn{{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
    for (int row = 0; row < 3; ++row) turn.m[row][kOrders[i / 8][row]] = i >> row & 1 ? -1 : 1;
    if (determinant(turn) < 0) continue;
    double sum = 0;
    for (const Vec3d& p : surface) sum += std::abs(sample(mean, middle + turn * (p - middle)).mm);
    const double voxels = sum / static_cast<double>(surface.size()) / voxel_mm;
    if (voxels < 1) found.push_back({canonical(quaternion_of(turn)), voxels});
  }
  return found;
}

}  // namespace

PoseTruth fit_poses(std::span<const Volume<uint8_t>> masks, OrientationKind kind,
                    const Context& context) {
  std::vector<Shape> shapes(masks.size());
  const auto for_all = [&](const auto& body) {
    context.throw_if_stopped("stopped while poses were fitted to label maps");
    parallel_for(context.threads, static_cast<int64_t>(shapes.size()), 1,
                 [&](int64_t begin, int64_t end) {
                   for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
                     body(i);
                 });
  };
  for_all([&](size_t i) { shapes[i] = shape_of(masks[i], "mask " + std::to_string(i)); });
  std::vector<Similarity> fits(shapes.size());
  PoseTruth truth;
  truth.cases.resize(shapes.size());
  DistanceField mean;
  if (kind == OrientationKind::kFit) {
    for_all([&](size_t i) {
      const Moments moments = moments_of(shapes[i].distance);
      fits[i] = {moments.centroid_mm, Quaternion{}, moments.size_mm};
    });
    fix_gauge(fits, {});
    // The mean shape is that of the fits before the last, so that another fit to it, of one of the
    // cases or of a new one, finds the same frame.
    std::vector<Similarity> before;
    for (int round = 0; round < kRounds; ++round) {
      before = fits;
      mean = mean_distance(shapes, before, context);
      for_all(
          [&](size_t i) { fits[i] = fit(shapes[i], before[i], mean, round < kSearchedRounds); });
      fix_gauge(fits, before);
    }
    mean = mean_distance(shapes, before, context);
    truth.symmetries = symmetries_of(mean, mean_voxel_mm(shapes));
  }
  for_all([&](size_t i) { truth.cases[i] = pose_of(shapes[i], fits[i], mean); });
  truth.mean_distance_mm = std::move(mean.mm);
  return truth;
}

CasePose fit_pose(const Volume<uint8_t>& mask, const Volume<float>& mean_distance_mm) {
  const Shape shape = shape_of(mask, "the mask");
  const DistanceField mean(mean_distance_mm);
  Similarity at;
  if (!mean.mm.empty()) at = fit(shape, at, mean, true);
  return pose_of(shape, at, mean);
}

}  // namespace larch::pose
