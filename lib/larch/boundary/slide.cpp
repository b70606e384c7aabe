// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/slide.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "larch/data/symmetric_matrix.h"
#include "larch/mesh/sphere_template.h"
#include "larch/mesh/triangle_tree.h"

namespace larch::boundary {
namespace {

constexpr int kRounds = 6;         ///< of the fit
constexpr double kPrior = 100;     ///< weight of the modes' variances against distances
constexpr int kSteps = 12;         ///< from the fitted shape to the surface
constexpr double kDamping = 0.01;  ///< of the pose, which a surface of revolution leaves open
constexpr size_t kPoseNumbers = 7;

/// A place on the surface.
struct Place {
  Vec3d at{}, normal{};
  double probability = 0;
};

/// Returns the vertex nearest to a point, of those that descending from `vertex` finds.
size_t nearest_vertex(const std::vector<mesh::Ring>& rings, const std::vector<Vec3d>& x,
                      const Vec3d& point, size_t vertex) {
  const auto square = [&](size_t v) { return dot(x[v] - point, x[v] - point); };
  for (size_t from = x.size(); from != vertex;) {
    from = vertex;
    for (int i = 0; i < rings[from].count; ++i) {
      const size_t next = rings[from].neighbours[i];
      if (square(next) < square(vertex)) vertex = next;
    }
  }
  return vertex;
}

/// The surface as the refinement has left it.
struct Surface {
  const std::vector<mesh::Ring>& rings;
  const std::vector<Vec3d>& x;
  const std::vector<float>& p;
  std::vector<Vec3d> normals{};

  Surface(const std::vector<mesh::Ring>& r, const Refined& mesh)
      : rings(r), x(mesh.vertices_mm), p(mesh.probability) {
    for (size_t v = 0; v < rings.size(); ++v) {
      normals.push_back(mesh::vertex_normal(rings[v], x.data(), static_cast<int>(v)));
    }
  }
  /// Returns the place nearest to a point, around the vertex that is found from `vertex`, which
  /// becomes it.
  Place nearest(const Vec3d& point, size_t& vertex) const {
    vertex = nearest_vertex(rings, x, point, vertex);
    Place place;
    double least = 1e300;
    const mesh::Ring& ring = rings[vertex];
    for (int i = 0; i < ring.count; ++i) {
      const size_t b = ring.neighbours[i], c = ring.neighbours[(i + 1) % ring.count];
      const auto [squared, w] = mesh::nearest_place(point, x[vertex], x[b], x[c]);
      if (squared >= least) continue;
      least = squared;
      place.at = x[vertex] * w.x + x[b] * w.y + x[c] * w.z;
      place.normal = normals[vertex] * w.x + normals[b] * w.y + normals[c] * w.z;
      place.probability = p[vertex] * w.x + p[b] * w.y + p[c] * w.z;
    }
    return place;
  }
};

/// A place on the surface that a vertex of the shape is drawn to, along the normal there.
struct Pull {
  size_t vertex;
  Vec3d at, normal;
};

/// The shape of the model on its way.
struct Fit {
  const Model& model;
  size_t count, modes;
  shape::Similarity at{};
  std::vector<double> b{};
  std::vector<Vec3d> points{};  ///< its vertices

  void place() {
    const Mat3 turn = rotation_matrix(at.rotation);
    for (size_t v = 0; v < count; ++v) {
      Vec3d y = model.shape.mean_mm[v];
      for (size_t k = 0; k < modes; ++k) y += b[k] * model.shape.modes[k][v];
      points[v] = shape::placed(at, turn, y);
    }
  }
  void step(const std::vector<Pull>& pulls);
};

/// One step of Gauss and Newton: shift, turn and scale about the centroid, and modes.
void Fit::step(const std::vector<Pull>& pulls) {
  const size_t n = kPoseNumbers + modes;
  std::vector<double> matrix(n * n, 0), wanted(n, 0), row(n);
  Vec3d centre{};
  for (const Vec3d& p : points) centre += p / static_cast<double>(count);
  const Mat3 back = rotation_matrix(conjugate(at.rotation));
  for (const auto& [v, place, towards] : pulls) {
    const Vec3d normal = towards / std::max(norm(towards), 1e-9), arm = points[v] - centre;
    const Vec3d moment = cross(arm, normal), in_shape = back * normal * at.scale;
    for (int axis = 0; axis < 3; ++axis) {
      const auto k = static_cast<size_t>(axis);
      row[k] = normal[axis];
      row[3 + k] = moment[axis];
      matrix[k * n + k] += kDamping;
      matrix[(3 + k) * n + 3 + k] += kDamping * dot(arm, arm);
    }
    row[6] = dot(normal, arm);
    matrix[6 * n + 6] += kDamping * dot(arm, arm);
    for (size_t k = 0; k < modes; ++k) row[7 + k] = dot(in_shape, model.shape.modes[k][v]);
    const double off = dot(normal, place - points[v]);
    for (size_t i = 0; i < n; ++i) {
      wanted[i] += row[i] * off;
      for (size_t j = 0; j <= i; ++j) matrix[i * n + j] += row[i] * row[j];
    }
  }
  for (size_t k = 0; k < modes; ++k) {
    matrix[(7 + k) * (n + 1)] += kPrior / model.shape.variances_mm2[k];
    wanted[7 + k] -= kPrior / model.shape.variances_mm2[k] * b[k];
  }
  factorise(matrix, n);
  solve(matrix, wanted);
  const Quaternion turned = from_rotation_vector(Vec3d{wanted[3], wanted[4], wanted[5]});
  const double factor = std::clamp(1 + wanted[6], 0.5, 2.0);
  at.centre =
      centre + rotate(turned, at.centre - centre) * factor + Vec3d{wanted[0], wanted[1], wanted[2]};
  at.rotation = turned * at.rotation;
  at.scale *= factor;
  for (size_t k = 0; k < modes; ++k) {
    const double most = 3 * std::sqrt(model.shape.variances_mm2[k]);
    b[k] = std::clamp(b[k] + wanted[7 + k], -most, most);
  }
}

/// The vertices of a mesh beside a surface, each with the nearest of the other.
struct Neighbours {
  const Surface& surface;
  std::vector<size_t> on_surface{}, on_mesh{};

  explicit Neighbours(const Surface& s) : surface(s), on_surface(s.rings.size()) {
    std::iota(on_surface.begin(), on_surface.end(), size_t{0});
    on_mesh = on_surface;
  }
  /// Returns the places that draw the mesh to the surface: those next to its vertices, and the
  /// vertices of the surface, without which thin ends would not be reached.
  std::vector<Pull> pulls(const std::vector<Vec3d>& x) {
    std::vector<Pull> all;
    for (size_t v = 0; v < x.size(); ++v) {
      const Place place = surface.nearest(x[v], on_surface[v]);
      all.push_back({v, place.at, place.normal});
    }
    for (size_t w = 0; w < x.size(); ++w) {
      const Vec3d& at = surface.x[w];
      on_mesh[w] = nearest_vertex(surface.rings, x, at, on_mesh[w]);
      all.push_back({on_mesh[w], at, surface.normals[w]});
    }
    return all;
  }
};

/// Moves the vertices of a shape that is near to the surface onto it, each by the mean of what it
/// is drawn by, since places next to the vertices alone would crowd where the surface bends. The
/// last step is to these places.
void draw_to_surface(Neighbours& near, std::vector<Vec3d>& x) {
  const std::vector<mesh::Ring>& rings = near.surface.rings;
  const size_t count = x.size();
  std::vector<Vec3d> move(count), smoothed(count);
  std::vector<double> pulls(count);
  for (int step = 0; step <= kSteps; ++step) {
    const bool is_last = step == kSteps;
    std::fill(move.begin(), move.end(), Vec3d{});
    std::fill(pulls.begin(), pulls.end(), 0.0);
    for (const Pull& pull : near.pulls(x)) {
      if (is_last && pulls[pull.vertex] > 0) continue;
      move[pull.vertex] += pull.at - x[pull.vertex];
      pulls[pull.vertex] += 1;
    }
    for (size_t v = 0; v < count; ++v) move[v] = move[v] / pulls[v];
    for (size_t v = 0; v < count && !is_last; ++v) {
      smoothed[v] = move[v] - mesh::laplacian(rings[v], move.data(), static_cast<int>(v)) * 0.5;
    }
    for (size_t v = 0; v < count; ++v) x[v] += is_last ? move[v] : smoothed[v];
    mesh::unfold(OneThread{}, rings.data(), static_cast<int>(count), x.data(), move.data(),
                 smoothed.data(), pulls.data());
  }
}

}  // namespace

void slide(const Model& model, Refined& refined) {
  const auto level = static_cast<size_t>(model.levels() - 1);
  const Surface surface(mesh::sphere_template().levels[level].rings, refined);
  Fit fit{model, refined.vertices_mm.size(), static_cast<size_t>(model.modes())};
  shape::ShapeFit sums;
  fit.at = shape::fit_similarity(OneThread{}, static_cast<int>(fit.count),
                                 model.shape.mean_mm.data(), refined.vertices_mm.data(), sums);
  fit.b.assign(fit.modes, 0);
  fit.points.resize(fit.count);
  fit.place();
  Neighbours near(surface);
  for (int round = 0; round < kRounds; ++round) {
    fit.step(near.pulls(fit.points));
    fit.place();
  }
  draw_to_surface(near, fit.points);
  std::vector<float> probability;
  for (size_t v = 0; v < fit.count; ++v) {
    const Place place = surface.nearest(fit.points[v], near.on_surface[v]);
    probability.push_back(static_cast<float>(place.probability));
  }
  refined = {std::move(fit.points), std::move(probability)};
}

}  // namespace larch::boundary
