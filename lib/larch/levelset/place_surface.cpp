// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/place_surface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/filters/components.h"
#include "larch/filters/distance.h"
#include "larch/levelset.h"
#include "larch/levelset/speed/edges.h"
#include "larch/levelset/speed/speed_math.h"
#include "larch/levelset/step/time_step.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/triangle_tree.h"

namespace larch::levelset {
namespace {

constexpr float kMinimum = 1e-6F;  ///< replaces a speed of 0, so that its sign tells the side

/// Returns the values around a voxel; beyond the image those at its border count.
Stencil<float> stencil_at(const Volume<float>& values, const Vec3i& at) {
  const Vec3i last = values.size() - Vec3i{1, 1, 1};
  const auto value = [&](int32_t x, int32_t y, int32_t z) {
    return values({std::clamp(at.x + x, 0, last.x), std::clamp(at.y + y, 0, last.y),
                   std::clamp(at.z + z, 0, last.z)});
  };
  return {value(0, 0, 0),   value(-1, 0, 0),  value(1, 0, 0),   value(0, -1, 0), value(0, 1, 0),
          value(0, 0, -1),  value(0, 0, 1),   value(-1, -1, 0), value(1, -1, 0), value(-1, 1, 0),
          value(1, 1, 0),   value(-1, 0, -1), value(1, 0, -1),  value(-1, 0, 1), value(1, 0, 1),
          value(0, -1, -1), value(0, 1, -1),  value(0, -1, 1),  value(0, 1, 1)};
}

/// Says which part of an image is looked at.
struct Part {
  Vec3i origin{}, size{};

  template <class T>
  Volume<T> of(const Volume<T>& whole) const {
    if (whole.empty()) return {};
    Grid grid = whole.grid();
    grid.size = size;
    grid.origin_mm = world_from_index(whole.grid(), origin.cast<double>());
    auto part = Volume<T>::unfilled(grid);
    for_rows([&](int64_t row, const Vec3i& at) {
      std::copy_n(whole.data() + whole.grid().linear(at), size.x, part.data() + row * size.x);
    });
    return part;
  }
  /// Calls use(row, its first voxel in the whole image).
  template <class Use>
  void for_rows(const Use& use) const {
    for (int64_t row = 0; row < int64_t{size.y} * size.z; ++row) {
      use(row, Vec3i{origin.x, origin.y + static_cast<int32_t>(row % size.y),
                     origin.z + static_cast<int32_t>(row / size.y)});
    }
  }
};

/// Returns the part that holds all voxels below 0 and `margin` more on each side; nothing if there
/// are none.
Part part_inside(const Volume<float>& phi, int32_t margin) {
  const Vec3i size = phi.size();
  const auto [lo, hi] = filters::box_of(phi, [](float value) { return value < 0; });
  Part part;
  if (hi.x < 0) return part;
  for (int axis = 0; axis < 3; ++axis) {
    part.origin[axis] = std::max(lo[axis] - margin, 0);
    part.size[axis] = std::min(hi[axis] + margin, size[axis] - 1) + 1 - part.origin[axis];
  }
  return part;
}

/// Calls f(linear index) for the voxels so many steps away along the axes.
template <class F>
void for_neighbours(const Grid& grid, int64_t i, int32_t steps, const F& f) {
  const Vec3i at = grid.voxel(i);
  int64_t stride = steps;
  for (int axis = 0; axis < 3; stride *= grid.size[axis], ++axis) {
    if (at[axis] >= steps) f(i - stride);
    if (at[axis] + steps < grid.size[axis]) f(i + stride);
  }
}

/// Holds the speeds of a field in a part of the image, on the host.
struct Forces {
  Forces(const LevelsetField& field, const Grid& grid, const Part& part, const Context& context)
      : step(field.step) {
    const auto image = [&](const Buffer<int16_t>& values) {
      return values.empty() ? Volume<int16_t>()
                            : part.of(stored_volume(field, values, grid, context));
    };
    speed = image(field.speed);
    for (size_t axis = 0; axis < 3; ++axis) advection[axis] = image(field.advection[axis]);
  }

  /// Returns the speed inwards at voxel i, with the normal and the curvature of the values `p`
  /// around it.
  float inwards(const Stencil<float>& p, int64_t i) const {
    const Vec3f slope{(p.xp - p.xm) * step.per_2h.x, (p.yp - p.ym) * step.per_2h.y,
                      (p.zp - p.zm) * step.per_2h.z};
    const float steep = std::max(std::sqrt(dot(slope, slope)), kMinimum);
    const float bent = step.curvature * curvature_flow(p, step) / steep;
    float drift = 0;
    for (int axis = 0; axis < 3 && !advection[0].empty(); ++axis) {
      drift += speed_of(advection[static_cast<size_t>(axis)][i]) * slope[axis] / steep;
    }
    return bent - step.propagation * speed_of(speed[i]) - step.advection * drift;
  }

  Step step;
  Volume<int16_t> speed{};
  std::array<Volume<int16_t>, 3> advection{};
};

/// Returns -D, smoothed, with 0 where its sign is not that of phi: it gives normals and curvature.
Volume<float> smooth_speed(const Forces& forces, const Volume<float>& phi_mm, int threads) {
  auto sided = Volume<float>::unfilled(phi_mm.grid());
  for (int64_t i = 0; i < sided.voxels(); ++i) {
    const float speed = -std::max(speed_of(forces.speed[i]), -1.0F);
    sided[i] = phi_mm[i] < 0 ? std::min(speed, 0.0F) : std::max(speed, 0.0F);
  }
  return smoothed(sided, 1.5 * smallest_spacing_mm(phi_mm.grid().spacing_mm, phi_mm.size()),
                  threads);
}

/// Returns what replaces a speed of the wrong sign: nearly 0, or, where a limit or another label
/// holds the voxel, the mean size of the speeds across the surface, which then passes half way.
/// `sides`: the speeds of all voxels.
float instead_of_speed(const Forces& forces, const Volume<float>& phi, const LabelVolume& labels,
                       const Volume<float>& sides, int64_t i) {
  const bool is_inside = phi[i] < 0;
  const bool is_held = !is_inside && (forces.speed[i] == kFrozen || labels[i] != 0);
  float sum = 0;
  int count = 0;
  for_neighbours(phi.grid(), i, 1, [&](int64_t n) {
    if ((phi[n] < 0) == is_inside || (sides[n] < 0) != (phi[n] < 0)) return;
    sum += std::abs(sides[n]), ++count;
  });
  const float size = is_held && count > 0 ? sum / static_cast<float>(count) : kMinimum;
  return is_inside ? -size : size;
}

/// Returns a surface that goes on `mm` and more beyond the border of the image, where its mesh is
/// closed.
Volume<float> extended(const Volume<float>& surface, double mm, int threads) {
  Grid grid = surface.grid();
  Vec3i more{};
  for (int axis = 0; axis < 3; ++axis) {
    more[axis] = static_cast<int32_t>(std::ceil(mm / grid.spacing_mm[axis])) + 1;
    grid.size[axis] += 2 * more[axis];
  }
  grid.origin_mm = world_from_index(grid, (more * -1).cast<double>());
  auto wide = Volume<float>::unfilled(grid);
  const Vec3i size = surface.size();
  parallel_for_each(threads, int64_t{grid.size.y} * grid.size.z, 256, [&](int64_t row) {
    const auto y = static_cast<int32_t>(row % grid.size.y) - more.y;
    const auto z = static_cast<int32_t>(row / grid.size.y) - more.z;
    const float* from = surface.data() + surface.grid().linear({0, std::clamp(y, 0, size.y - 1),
                                                                std::clamp(z, 0, size.z - 1)});
    float* to = std::fill_n(wide.data() + row * grid.size.x, more.x, from[0]);
    std::fill_n(std::copy_n(from, size.x, to), more.x, from[size.x - 1]);
  });
  return wide;
}

/// Returns at which part of the way from one voxel to the next along an axis a surface lies.
double crossing(const Volume<float>& surface, const Vec3i& from, int axis) {
  const auto value = [&](int32_t steps) {
    Vec3i at = from;
    at[axis] = std::clamp(at[axis] + steps, 0, surface.size()[axis] - 1);
    return double{surface(at)};
  };
  const double a = value(0), b = value(1);
  const double bent_a = value(-1) - 2 * a + b, bent_b = a - 2 * b + value(2);
  double m = std::abs(bent_a) < std::abs(bent_b) ? bent_a : bent_b;
  m = bent_a * bent_b > 0 ? std::clamp(m, -std::abs(a - b), std::abs(a - b)) : 0;
  // This root of a + p t + q t^2 = 0 is the one on the way; the form avoids cancellation.
  const double q = m / 2, p = b - a - q;
  const double t = 2 * a / (-p - std::copysign(std::sqrt(std::max(p * p - 4 * q * a, 0.0)), p));
  constexpr double kMargin = 1e-3;  // Marching cubes keeps vertices so far from voxels.
  return std::clamp(t, kMargin, 1 - kMargin);
}

/// Moves the vertices of marching cubes, each on the line between two voxels, along that line.
void move_vertices(Mesh& mesh, const Volume<float>& surface, int threads) {
  const Grid& grid = surface.grid();
  const auto count = static_cast<int64_t>(mesh.vertices_mm.size());
  parallel_for_each(threads, count, 1 << 10, [&](int64_t v) {
    Vec3d& vertex_mm = mesh.vertices_mm[static_cast<size_t>(v)];
    Vec3d index = index_from_world(grid, vertex_mm);
    int axis = 0;
    const auto off = [&](int k) { return std::abs(index[k] - std::round(index[k])); };
    for (int k = 1; k < 3; ++k) axis = off(k) > off(axis) ? k : axis;
    Vec3i from{};
    for (int k = 0; k < 3; ++k) {
      index[k] = k == axis ? std::floor(index[k]) : std::round(index[k]);
      from[k] = static_cast<int32_t>(index[k]);
    }
    Vec3i to = from;
    ++to[axis];
    if (!grid.contains(from) || !grid.contains(to)) return;
    index[axis] += crossing(surface, from, axis);
    vertex_mm = world_from_index(grid, index);
  });
}

/// Returns the diagonal of the image at each voxel, for a surface of one sign.
Volume<float> one_sided(const Volume<float>& surface) {
  const Grid& grid = surface.grid();
  Vec3d sides{};
  for (int axis = 0; axis < 3; ++axis) sides[axis] = grid.size[axis] * grid.spacing_mm[axis];
  return Volume<float>(grid, static_cast<float>(std::copysign(norm(sides), surface[0])));
}

/// Returns how far from a voxel a place between neighbours lies, at most, if the mesh is within
/// `exact_mm`: a cell farther.
double near_mm(const Grid& grid, double exact_mm) {
  return exact_mm + norm(grid.spacing_mm);
}

/// Replaces the distances of some voxels of a part, whose numbers in it is_near() is asked for, by
/// those to the mesh, up to `most_mm`. It goes on `beyond_mm` behind the border.
template <class IsNear>
void measure_to_mesh(const Volume<float>& surface, const Part& part, double beyond_mm,
                     double most_mm, int threads, Volume<float>& distance_mm,
                     const IsNear& is_near) {
  const Grid& grid = surface.grid();
  const mesh::TriangleTree tree(
      surface_mesh(extended(surface, beyond_mm, threads), threads, mesh::TriangleTree::bytes(1)),
      threads);
  // Two voxels along each axis are looked at together.
  const Grid all{.size = part.size};
  const Vec3i pairs{(all.size.x + 1) / 2, (all.size.y + 1) / 2, (all.size.z + 1) / 2};
  parallel_for(threads, int64_t{pairs.y} * pairs.z, 8, [&](int64_t begin, int64_t end) {
    int32_t hint = 0;
    for (int64_t i = begin * pairs.x; i < end * pairs.x; ++i) {
      const Vec3i first = Grid{.size = pairs}.voxel(i) * 2;
      std::array<int64_t, 8> voxels{};
      std::array<Vec3d, 8> places_mm{};
      std::array<double, 8> mm{};
      size_t count = 0;
      for (int k = 0; k < 8; ++k) {
        const int step = k ^ k >> 1;  // from each to a neighbour
        const Vec3i of_part = first + Vec3i{step & 1, step >> 1 & 1, step >> 2};
        if (!all.contains(of_part) || !is_near(all.linear(of_part))) continue;
        const Vec3i at = part.origin + of_part;
        voxels[count] = grid.linear(at);
        places_mm[count++] = world_from_index(grid, at.cast<double>());
      }
      if (count == 0) continue;
      tree.distances_mm(std::span(places_mm).first(count), hint, most_mm, mm.data());
      for (size_t k = 0; k < count; ++k) {
        distance_mm[voxels[k]] = static_cast<float>(surface[voxels[k]] < 0 ? -mm[k] : mm[k]);
      }
    }
  });
}

}  // namespace

Volume<float> place_surface(const LevelsetField& field, const EndVoxels& end,
                            const Context& context) {
  // Speeds count within three voxels of the surface, and smoothing reaches five farther.
  constexpr int32_t kMargin = 10;
  const Part part = part_inside(end.phi_mm, kMargin);
  Volume<float> whole(end.phi_mm.grid(), 1);
  if (part.size.x == 0) return whole;
  const Volume<float> phi = part.of(end.phi_mm);
  const LabelVolume labels = part.of(end.labels);
  const Grid& grid = phi.grid();
  const Forces forces(field, whole.grid(), part, context);
  const Volume<float> smooth = smooth_speed(forces, phi, context.threads);
  auto sides = Volume<float>::unfilled(grid);
  std::vector<int64_t> wrong;
  std::mutex mutex;
  parallel_for_each(context.threads, grid.voxels(), 1 << 14, [&](int64_t i) {
    const bool is_inside = phi[i] < 0;
    sides[i] = is_inside ? -1.0F : 1.0F;
    bool is_cut = false, is_near = false;
    for_neighbours(grid, i, 1, [&](int64_t n) { is_cut |= (phi[n] < 0) != is_inside; });
    for_neighbours(grid, i, 2, [&](int64_t n) { is_near |= (phi[n] < 0) != is_inside; });
    if (!is_cut && !is_near) return;
    const float speed = forces.inwards(stencil_at(smooth, grid.voxel(i)), i);
    if (is_inside ? speed < 0 : speed > 0 && forces.speed[i] != kFrozen) {
      sides[i] = speed;
    } else if (is_cut) {
      sides[i] = is_inside ? 0.0F : -1.0F;  // No speed of this side has this value.
      const std::lock_guard lock(mutex);
      wrong.push_back(i);
    }
  });
  std::vector<float> instead;
  instead.reserve(wrong.size());
  for (const int64_t i : wrong) instead.push_back(instead_of_speed(forces, phi, labels, sides, i));
  for (size_t k = 0; k < wrong.size(); ++k) sides[wrong[k]] = instead[k];
  part.for_rows([&](int64_t row, const Vec3i& at) {
    std::copy_n(sides.data() + row * part.size.x, part.size.x,
                whole.data() + whole.grid().linear(at));
  });
  return whole;
}

Volume<float> surface_of_all(const SegmentResult& result) {
  Volume<float> all = result.by_label.at(0).surface;
  for (size_t f = 1; f < result.by_label.size(); ++f) {
    const Volume<float>& other = result.by_label[f].surface;
    for (int64_t i = 0; i < all.voxels(); ++i) all[i] = std::min(all[i], other[i]);
  }
  return all;
}

Mesh surface_mesh(const Volume<float>& surface, int threads, int64_t more) {
  Context context;
  context.threads = threads;
  const auto inside = mapped<uint8_t>(surface, [](float value) { return value < 0; });
  const mesh::SurfaceSize size = mesh::surface_size(inside, context);
  mesh::require_memory(
      size, mesh::marching_cubes_bytes(size, surface.size(), threads) + more * size.triangles);
  Mesh mesh = mesh::marching_cubes(inside, context);
  move_vertices(mesh, surface, threads);
  return mesh;
}

Volume<float> surface_distance_mm(const Volume<float>& surface, double exact_mm, int threads) {
  const Grid& grid = surface.grid();
  Volume<float> distance_mm = filters::distance_to_zeros_mm(surface, threads);
  if (std::isinf(distance_mm[0])) return one_sided(surface);
  const double near = near_mm(grid, exact_mm);
  measure_to_mesh(surface, {{}, grid.size}, near, std::numeric_limits<double>::infinity(), threads,
                  distance_mm,
                  [&](int64_t i) { return std::abs(distance_mm[i]) <= static_cast<float>(near); });
  return distance_mm;
}

Volume<float> surface_level_mm(const Volume<float>& surface, float most_mm, int threads) {
  const Grid& grid = surface.grid();
  // A place of the mesh is in a cell with a voxel of either side.
  const int reach = static_cast<int>(most_mm / smallest_spacing_mm(grid.spacing_mm, grid.size)) + 1;
  const Part part = part_inside(surface, reach + 1);
  const Volume<float> sides = part.of(surface);
  std::vector<uint8_t> near(static_cast<size_t>(sides.voxels()));
  parallel_for_each(threads, sides.voxels(), 1 << 14, [&](int64_t i) {
    bool is_cut = false;
    for_neighbours(sides.grid(), i, 1,
                   [&](int64_t n) { is_cut |= (sides[n] < 0) != (sides[i] < 0); });
    near[static_cast<size_t>(i)] = is_cut ? 1 : 0;
  });
  if (std::ranges::find(near, 1) == near.end()) {
    return Volume<float>(grid, std::clamp(one_sided(surface)[0], -most_mm, most_mm));
  }
  auto level_mm = mapped<float>(surface, [=](float s) { return s < 0 ? -most_mm : most_mm; });
  near = filters::dilated(near, part.size, reach);
  measure_to_mesh(surface, part, near_mm(grid, most_mm), most_mm, threads, level_mm,
                  [&](int64_t i) { return near[static_cast<size_t>(i)] != 0; });
  return level_mm;
}

}  // namespace larch::levelset
