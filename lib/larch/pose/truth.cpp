// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/truth.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/filters/components.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pose/distance_map.h"
#include "larch/pose/mean_rotation.h"

namespace larch::pose {
namespace {

constexpr int kRounds = 3;          ///< of mean shape and fits; more change nothing
constexpr int kSteps = 20;          ///< of a fit
constexpr size_t kVertices = 2000;  ///< that a fit looks at, at most
constexpr int kSearchSteps = 6;     ///< the same for each of its starts
constexpr size_t kSearchVertices = 250;
constexpr double kSearchTurn = 0.436;  ///< radians between starts: 25 degrees
/// Cosine of half of 60 degrees. A fit that turns by more has slipped to another end of the shape.
constexpr double kMinimumCosine = 0.866;
constexpr int32_t kLongest = 64;  ///< voxels along the longest edge of a distance map, about

/// x = centre_mm + scale R m takes the frame of the mean shape to the world.
struct Similarity {
  Vec3d centre_mm;
  Quaternion rotation;
  double scale = 1;
};
Vec3d mean_from_world(const Similarity& at, const Vec3d& world_mm) {
  return rotate(conjugate(at.rotation), world_mm - at.centre_mm) / at.scale;
}

/// A structure of one case, or the mean shape, whose surface is not needed.
struct Shape {
  Volume<float> distance_mm;
  std::vector<Vec3d> surface_mm;  ///< vertices
  bool touches_border = false;
  Vec3d centroid_mm;
  double size_mm = 0;  ///< cube root of the volume

  explicit Shape(Volume<float> distances = {}) : distance_mm(std::move(distances)) {
    const Grid& grid = distance_mm.grid();
    double inside = 0;
    for (int64_t i = 0; i < distance_mm.voxels(); ++i) {
      if (distance_mm[i] >= 0) continue;
      centroid_mm += grid.voxel(i).cast<double>();
      inside += 1;
    }
    if (inside == 0) return;
    centroid_mm = world_from_index(grid, centroid_mm / inside);
    size_mm = exp_of(log_of(inside * grid.voxel_volume_mm3()) / 3);
  }
};

Shape shape_of(const Volume<uint8_t>& mask, const std::string& name) {
  check_mask(mask, name);
  Shape shape(distance_map(mask, kLongest));
  shape.surface_mm = mesh::marching_cubes(mask, Context{}).vertices_mm;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    const Vec3i at = mask.grid().voxel(i);
    for (int axis = 0; axis < 3; ++axis)
      shape.touches_border |= at[axis] == 0 || at[axis] == mask.size()[axis] - 1;
  }
  return shape;
}

/// Returns the box along `axes` that holds the points.
Pose box_of(std::span<const Vec3d> points_mm, const Quaternion& axes) {
  Vec3d low{1e300, 1e300, 1e300}, high = low * -1;
  for (const Vec3d& point : points_mm) widen(low, high, rotate(conjugate(axes), point));
  return {rotate(axes, (low + high) * 0.5), axes, high - low};
}

// A change of a similarity has seven parts: a translation and a rotation vector in the frame of the
// mean shape, and the logarithm of the scale.
constexpr int kParts = 7;

/// A similarity and, summed over vertices, the products of the derivatives of the residual by the
/// seven parts and of the residual itself, in mm of the world.
struct Fit {
  Similarity at;
  double sums[kParts + 1][kParts + 1] = {};
  double cost() const { return sums[kParts][kParts]; }
};

Fit fit_at(const Similarity& at, const Shape& shape, const Volume<float>& mean_mm, size_t every) {
  Fit fit{at};
  for (size_t i = 0; i < shape.surface_mm.size(); i += every) {
    const Vec3d m = mean_from_world(at, shape.surface_mm[i]);
    const DistanceSample phi = sample_distance(mean_mm, m);
    // In mm of the mean shape a large scale would win.
    const double residual = at.scale * phi.mm;
    const Vec3d g = phi.gradient * -at.scale, h = cross(m, g);
    const double part[kParts + 1] = {g.x, g.y, g.z, h.x, h.y, h.z, residual + dot(g, m), residual};
    for (int a = 0; a <= kParts; ++a)
      for (int b = 0; b <= kParts; ++b) fit.sums[a][b] += part[a] * part[b];
  }
  return fit;
}

/// Returns the minimum of the parabola of squared residuals, damped, by Gauss and Jordan. Rotations
/// are damped like the scale, so that those that change nothing stay as they are.
Similarity minimum_of(Fit fit, double damping) {
  const double scale_sum = fit.sums[kParts - 1][kParts - 1];
  for (int a = 0; a < kParts; ++a) fit.sums[a][a] += damping * (a < 3 ? fit.sums[a][a] : scale_sum);
  for (int pivot = 0; pivot < kParts; ++pivot) {
    for (int row = 0; row < kParts; ++row) {
      const double share = fit.sums[row][pivot] / fit.sums[pivot][pivot];
      for (int c = pivot; row != pivot && c <= kParts; ++c)
        fit.sums[row][c] -= share * fit.sums[pivot][c];
    }
  }
  double step[kParts];
  for (int a = 0; a < kParts; ++a) step[a] = -fit.sums[a][kParts] / fit.sums[a][a];
  const Similarity& at = fit.at;
  return {at.centre_mm + rotate(at.rotation, {step[0], step[1], step[2]}) * at.scale,
          canonical(at.rotation * from_rotation_vector({step[3], step[4], step[5]})),
          at.scale * exp_of(step[6])};
}

/// Steps of Levenberg and Marquardt on at most so many vertices.
Fit descend(const Similarity& from, const Shape& shape, const Volume<float>& mean_mm,
            size_t vertices, int steps) {
  const size_t every = (shape.surface_mm.size() + vertices - 1) / vertices;
  Fit here = fit_at(from, shape, mean_mm, every);
  double damping = 1e-3;
  for (int i = 0; i < steps; ++i) {
    const Fit there = fit_at(minimum_of(here, damping), shape, mean_mm, every);
    const bool is_better = there.cost() < here.cost();
    damping = is_better ? std::max(damping * 0.2, 1e-6) : damping * 10;
    if (is_better) here = there;
  }
  return here;
}

void check_inside(const Shape& mean) {
  if (mean.size_mm > 0) return;
  throw InputError(
      "the mean shape has no inside, since the structure is thin and differs much between the "
      "cases: give it no orientation of its own");
}

/// The fit of a case to the mean shape. It starts from small turns, with centroids and volumes made
/// to agree, and goes on from where the best of these leads.
Similarity fit_to(const Shape& mean, const Shape& shape) {
  check_inside(mean);
  Similarity best;
  double least = 1e300;
  for (int i = 0; i < 27; ++i) {
    // The first start is not turned.
    const Vec3i digits{i % 3, i / 3 % 3, i / 9};
    Vec3d turn;
    for (int axis = 0; axis < 3; ++axis) turn[axis] = ((digits[axis] + 1) % 3 - 1) * kSearchTurn;
    Similarity start{{}, from_rotation_vector(turn), shape.size_mm / mean.size_mm};
    start.centre_mm = shape.centroid_mm - rotate(start.rotation, mean.centroid_mm) * start.scale;
    if (i == 0) best = start;
    const Fit found = descend(start, shape, mean.distance_mm, kSearchVertices, kSearchSteps);
    if (found.cost() >= least || found.at.rotation.w < kMinimumCosine) continue;
    best = found.at;
    least = found.cost();
  }
  const Similarity last = descend(best, shape, mean.distance_mm, kVertices, kSteps).at;
  return last.rotation.w < kMinimumCosine ? best : last;
}

/// The mean signed distance of the cases, on a grid that holds them as they are fitted.
Volume<float> mean_distance(std::span<const Shape> shapes, std::span<const Similarity> fits,
                            double voxel_mm, const Context& context) {
  std::vector<Vec3d> corners;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Pose box = box_of(shapes[k].surface_mm, fits[k].rotation);
    for (int c = 0; c < 8; ++c) corners.push_back(mean_from_world(fits[k], corner(box, c)));
  }
  const Pose all = box_of(corners, Quaternion{});
  const double longest = std::max({all.edges_mm.x, all.edges_mm.y, all.edges_mm.z});
  const double spacing = std::max(voxel_mm, longest / kLongest);
  Grid grid;
  grid.spacing_mm = {spacing, spacing, spacing};
  for (int axis = 0; axis < 3; ++axis)
    grid.size[axis] = 2 + static_cast<int32_t>((all.edges_mm[axis] + longest / 4) / spacing);
  grid.origin_mm = all.centre_mm - (grid.size.cast<double>() - Vec3d{1, 1, 1}) * (spacing / 2);
  auto mean_mm = Volume<float>::unfilled(grid);
  parallel_for_each(context.threads, grid.voxels(), 256, [&](int64_t i) {
    const Vec3d m = world_from_index(grid, grid.voxel(i).cast<double>());
    double sum = 0;
    for (size_t k = 0; k < shapes.size(); ++k) {
      const Vec3d world_mm = fits[k].centre_mm + rotate(fits[k].rotation, m) * fits[k].scale;
      sum += sample_distance(shapes[k].distance_mm, world_mm).mm / fits[k].scale;
    }
    mean_mm[i] = static_cast<float>(sum / static_cast<double>(shapes.size()));
  });
  return mean_mm;
}

/// Returns the number of the case with the median volume.
size_t median_case(std::span<const Shape> shapes) {
  std::vector<size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shapes[a].size_mm < shapes[b].size_mm; });
  return order[order.size() / 2];
}

/// Turns and scales the frame of the mean shape so that the mean rotation of the fits to it becomes
/// the identity and their mean logarithm of the scale 0; `before` remain fits to that frame.
void fix_gauge(std::span<Similarity> fits, std::span<Similarity> before) {
  RotationSum rotations;
  double log_scale = 0;
  for (const Similarity& fit : fits) {
    rotations.add(fit.rotation, 1);
    log_scale += log_of(fit.scale) / static_cast<double>(fits.size());
  }
  const Quaternion back = conjugate(mean_rotation(rotations));
  for (const std::span<Similarity> some : {fits, before}) {
    for (Similarity& fit : some) {
      fit.rotation = canonical(fit.rotation * back);
      fit.scale *= exp_of(-log_scale);
    }
  }
}

/// The box of a case along the axes of its fit, and its residual if there is a mean shape.
CasePose pose_of(const Shape& shape, const Similarity& at, const Shape& mean) {
  CasePose out{box_of(shape.surface_mm, at.rotation), 0, shape.touches_border};
  if (mean.distance_mm.empty()) return out;
  for (const Vec3d& p : shape.surface_mm)
    out.residual_mm +=
        at.scale * std::abs(sample_distance(mean.distance_mm, mean_from_world(at, p)).mm);
  out.residual_mm /= static_cast<double>(shape.surface_mm.size());
  return out;
}

/// `most_mm`: a turn that moves the surface by more is none. The axes of a shape need not be those
/// of its symmetries exactly, so that each turned surface is fitted.
std::vector<Symmetry> symmetries_of(const Shape& mean, double most_mm) {
  constexpr double kMinimumCosineOfHalf = 0.966;  // of 30 degrees: further on it is another turn
  const auto depth_mm = mapped<float>(mean.distance_mm, [](float mm) { return -mm; });
  const std::vector<Vec3d> surface = mesh::marching_cubes(depth_mm, 0, Context{}).vertices_mm;
  const Vec3d middle = box_of(surface, Quaternion{}).centre_mm;
  std::vector<Symmetry> found;
  for (int i = 1; i < 48; ++i) {
    // Row r of the matrix is plus or minus the axis `along` it.
    Mat3 turn{{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
    for (int row = 0; row < 3; ++row) {
      const int along = ((i < 24 ? row : 2 * row) + i / 8) % 3;
      turn.m[row][along] = i >> row & 1 ? -1 : 1;
    }
    if (determinant(turn) < 0) continue;
    Shape turned;
    for (const Vec3d& p : surface) turned.surface_mm.push_back(middle + turn * (p - middle));
    const Similarity at = descend({}, turned, mean.distance_mm, kVertices, kSteps).at;
    const double moved_mm = pose_of(turned, at, mean).residual_mm;
    if (at.rotation.w >= kMinimumCosineOfHalf && moved_mm <= most_mm) {
      found.push_back({canonical(quaternion_of(turn)), moved_mm});
    }
  }
  return found;
}

}  // namespace

PoseTruth fit_poses(std::span<const Volume<uint8_t>> masks, OrientationKind kind,
                    const Context& context) {
  std::vector<Shape> shapes(masks.size());
  std::vector<Similarity> fits(masks.size());
  double voxel_mm = 0;
  for (const auto& mask : masks)
    voxel_mm +=
        exp_of(log_of(mask.grid().voxel_volume_mm3()) / 3) / static_cast<double>(masks.size());
  const auto for_all = [&](const auto& body) {
    context.throw_if_stopped("stopped while poses were fitted to label maps");
    parallel_for_each(context.threads, static_cast<int64_t>(masks.size()), 1,
                      [&](int64_t i) { body(static_cast<size_t>(i)); });
  };
  for_all([&](size_t i) {
    shapes[i] = shape_of(masks[i], "mask " + std::to_string(i));
    fits[i] = {shapes[i].centroid_mm, {}, shapes[i].size_mm};
  });
  Shape mean;
  PoseTruth truth;
  if (kind == OrientationKind::kFit) {
    // The mean shape is made of the fits before the last, so that other fits to it find its frame.
    // Before cases are aligned, the mean of thin shapes has hardly an inside: one case comes first.
    std::vector<Similarity> before;
    fix_gauge(fits, {});
    for (int round = 0; round < kRounds; ++round) {
      before = fits;
      const size_t first = round == 0 ? median_case(shapes) : 0;
      const size_t count = round == 0 ? 1 : shapes.size();
      mean = Shape(mean_distance(std::span(shapes).subspan(first, count),
                                 std::span(before).subspan(first, count), voxel_mm, context));
      for_all([&](size_t i) { fits[i] = fit_to(mean, shapes[i]); });
      fix_gauge(fits, before);
    }
    mean = Shape(mean_distance(shapes, before, voxel_mm, context));
    check_inside(mean);
  }
  double residual_mm = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    truth.cases.push_back(pose_of(shapes[i], fits[i], mean));
    residual_mm += truth.cases[i].residual_mm / static_cast<double>(shapes.size());
  }
  if (kind == OrientationKind::kFit) {
    // Surfaces of voxels are not known better than to a fraction of one.
    truth.symmetries = symmetries_of(mean, std::max(residual_mm, 0.1 * voxel_mm));
  }
  truth.mean_distance_mm = std::move(mean.distance_mm);
  return truth;
}

Volume<uint8_t> structure_mask(const LabelVolume& labels, std::span<const int32_t> values) {
  std::vector<int32_t> wanted(values.begin(), values.end());
  if (wanted.empty()) {
    for (const int32_t value : labels_in(labels)) {
      if (value != 0) wanted.push_back(value);
    }
  }
  Volume<uint8_t> mask = mask_of(labels, wanted);
  if (mask.empty()) return mask;
  return filters::fill_holes(filters::keep_largest_component(mask));
}

void check_mask(const Volume<uint8_t>& mask, const std::string& name) {
  const auto count = mask.voxels() - std::count(mask.begin(), mask.end(), uint8_t{0});
  if (count >= 8) return;
  throw InputError(name + " has " + std::to_string(count) +
                   " voxels of the structure, and a pose takes 8: leave the case out");
}

Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values) {
  constexpr int kMargin = 3;
  const auto is_wanted = [&](int32_t v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  };
  const Grid& grid = labels.grid();
  auto [low, high] = filters::box_of(labels, [&](int32_t v) { return v != 0 && is_wanted(v); });
  if (high.x < 0) return {};
  Grid part = grid;
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = std::max(low[axis] - kMargin, 0);
    high[axis] = std::min(high[axis] + kMargin, grid.size[axis] - 1);
  }
  part.size = high - low + Vec3i{1, 1, 1};
  part.origin_mm = world_from_index(grid, low.cast<double>());
  Volume<uint8_t> mask(part);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    mask[i] = is_wanted(labels[grid.linear(part.voxel(i) + low)]) ? 1 : 0;
  }
  return mask;
}

CasePose fit_pose(const Volume<uint8_t>& mask, const Volume<float>& mean_distance_mm) {
  const Shape mean(mean_distance_mm), shape = shape_of(mask, "the mask");
  return pose_of(shape, mean_distance_mm.empty() ? Similarity{} : fit_to(mean, shape), mean);
}

}  // namespace larch::pose
