// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/portable_math.h"
#include "larch/features/steerable/frame_trees.h"
#include "larch/mesh/ring_math.h"
#include "larch/shape/shape_math.h"
#include "larch/tree/traversal_math.h"

// The steps of a refinement, for host and device. Places are mm along the axes of the image's grid,
// from its first voxel.
namespace larch::boundary {

constexpr int kDisplacements = 32;       ///< that are tried on the normal of a vertex
constexpr int kSearchValues = 7;         ///< of each mode, in the search for the first shape
constexpr double kSearchReach = 2.5;     ///< deviations
constexpr double kMinimumWeight = 0.01;  ///< of a displacement that is hardly trusted
constexpr double kFound = 0.1;           ///< with less than that at all places there is no boundary

/// Displacement number j, in voxels, of those that reach `range` to either side.
LARCH_HD double displacement(double range, int j) {
  return range * (2.0 * j / (kDisplacements - 1) - 1);
}

/// The classifier of a level, on one device.
struct ClassifierView {
  const tree::TreeView* trees = nullptr;
  uint32_t tree_count = 0;
  const features::SteerableFeature* features = nullptr;
  features::SteerableImages images;

  /// Returns the probability that a frame lies on the boundary.
  template <class Lanes = tree::OneLane>
  LARCH_HD float probability(const features::SteerableFrame& frame, const Lanes& lanes = {}) const {
    const features::FrameResponse response{features, images, frame};
    return tree::probability_float(
        tree::ensemble_posterior(trees, tree_count, response, size_t{0}, lanes));
  }
};

/// A level of the mesh, on one device.
struct LevelView {
  const mesh::Ring* rings = nullptr;
  const uint16_t* parents = nullptr;  ///< four of each vertex that the level adds
  int first = 0, count = 0;           ///< vertices that it adds: first to count - 1
  shape::ShapeView shape;
  ClassifierView classifier;
  image::LevelScale scale;
  image::ImageExtent extent;
  double range_voxels = 4, lambda = 1, project = 1, fairing = 0.5;
  bool smooths_positions = false;
};

/// A mesh on its way, on one device: arrays by vertex.
struct MeshState {
  Vec3d* x = nullptr;
  Vec3d* normals = nullptr;
  features::SteerableFrame* frames = nullptr;
  float* probabilities = nullptr;  ///< kDisplacements of each vertex
  float* best = nullptr;           ///< the probability where a vertex goes
  double *wanted = nullptr, *weights = nullptr, *moved = nullptr;
  Vec3d *points = nullptr, *part = nullptr;  ///< scratch
  mesh::SmoothingScratch smoothing{};
  shape::ShapeFit* fit = nullptr;
  Mat3* turn = nullptr;  ///< from the frame of the shape to that of the mesh, scaled
};

/// Returns the frame at a vertex of a mesh, to which `turn` leads from the frame of the shape.
LARCH_HD features::SteerableFrame frame_at(const LevelView& level, const Mat3& turn,
                                           const Vec3d& at_mm, const Vec3d& normal) {
  const Vec3d along = turn.column(0), across = turn.column(1);
  return features::frame_of_vertex(at_mm, normal, along / norm(along), across / norm(across),
                                   level.scale);
}

/// The frames at the vertices as they lie.
template <class Team>
LARCH_HD void make_frames(const Team& team, const LevelView& level, const MeshState& s) {
  const Mat3 turn = *s.turn;
  team.each(level.count, [&](int v) {
    s.normals[v] = mesh::vertex_normal(level.rings[v], s.x, v);
    s.frames[v] = frame_at(level, turn, s.x[v], s.normals[v]);
  });
}

/// The similarity of shape and mesh becomes the turn of the state.
template <class Team>
LARCH_HD void set_turn(const Team& team, const shape::Similarity& at, const MeshState& s) {
  team.each(1, [&](int) {
    *s.turn = rotation_matrix(at.rotation);
    for (auto& row : s.turn->m)
      for (double& value : row) value *= at.scale;
  });
}

/// Begins a level with the vertices of the one before, or with its own where it adds none.
template <class Team>
LARCH_HD void begin_level(const Team& team, const LevelView& level, const MeshState& s) {
  const int known = level.first > 0 ? level.first : level.count;
  set_turn(team, shape::fit_similarity(team, known, level.shape.mean, s.x, *s.fit), s);
  team.each(level.count - known, [&](int i) {
    const int v = known + i;
    s.x[v] = mesh::placed_child(level.shape.mean, *s.turn, s.x, level.parents + 4 * i, v);
  });
  make_frames(team, level, s);
}

/// The boundary on the normal of a vertex lies where the mean of three neighbouring probabilities
/// is highest (of several places the one nearest to the vertex counts, then the first). A parabola
/// finds it between places. Where neighbouring places are as high it is in their middle, so that a
/// sure classifier draws to no side.
struct Peak {
  double voxels = 0, weight = kMinimumWeight;
  float probability = 0;
};
LARCH_HD Peak find_peak(const float* p, double range) {
  double mean[kDisplacements], sorted[kDisplacements];
  for (int j = 0; j < kDisplacements; ++j) {
    const int low = j > 0 ? j - 1 : j, high = j + 1 < kDisplacements ? j + 1 : j;
    double sum = 0;
    for (int k = low; k <= high; ++k) sum += p[k];
    mean[j] = sum / (high - low + 1);
    int at = j;
    for (; at > 0 && sorted[at - 1] > p[j]; --at) sorted[at] = sorted[at - 1];
    sorted[at] = p[j];
  }
  int best = 0;
  for (int j = 1; j < kDisplacements; ++j) {
    const int t = 2 * j - (kDisplacements - 1), t_best = 2 * best - (kDisplacements - 1);
    if (mean[j] > mean[best] || (mean[j] == mean[best] && t * t < t_best * t_best)) best = j;
  }
  Peak peak;
  peak.probability = static_cast<float>(mean[best]);
  if (mean[best] < kFound) return peak;
  int first = best, last = best;
  while (first > 0 && mean[first - 1] == mean[best]) --first;
  while (last + 1 < kDisplacements && mean[last + 1] == mean[best]) ++last;
  double part = 0.5 * (first + last) - best;
  if (first == last && best > 0 && best + 1 < kDisplacements) {
    const double bend = mean[best - 1] - 2 * mean[best] + mean[best + 1];
    if (bend < 0) part = 0.5 * (mean[best - 1] - mean[best + 1]) / bend;
    part = part > 0.5 ? 0.5 : part < -0.5 ? -0.5 : part;
  }
  peak.voxels = displacement(range, best) + part * 2 * range / (kDisplacements - 1);
  const double median = (sorted[kDisplacements / 2 - 1] + sorted[kDisplacements / 2]) / 2;
  const double rise = mean[best] - median;
  peak.weight = rise > 1 ? 1 : rise < kMinimumWeight ? kMinimumWeight : rise;
  return peak;
}

/// Tells whether a place lies within the outermost voxel centres of the image, or half a voxel off.
LARCH_HD bool is_inside(const LevelView& level, const Vec3d& at_mm) {
  bool inside = level.extent.holds(at_mm);
  for (int axis = 0; axis < 3; ++axis) {
    const double voxel = level.scale.voxel(at_mm[axis]);
    inside = inside && voxel >= -0.5 && voxel <= level.classifier.images.sizes[0][axis] - 0.5;
  }
  return inside;
}

/// Places that the vertices go to, before the shape has its say.
template <class Team>
LARCH_HD void displace(const Team& team, const LevelView& level, const MeshState& s) {
  if (!level.smooths_positions) {
    mesh::smooth_displacements(team, level.rings, level.count, level.lambda, s.weights, s.wanted,
                               s.moved, s.smoothing);
    team.each(level.count, [&](int v) { s.x[v] += s.moved[v] * s.normals[v]; });
    return;
  }
  team.each(level.count, [&](int v) { s.points[v] = s.x[v] + s.wanted[v] * s.normals[v]; });
  for (int axis = 0; axis < 3; ++axis) {
    team.each(level.count, [&](int v) { s.wanted[v] = s.points[v][axis]; });
    mesh::smooth_displacements(team, level.rings, level.count, level.lambda, s.weights, s.wanted,
                               s.moved, s.smoothing);
    team.each(level.count, [&](int v) { s.x[v][axis] = s.moved[v]; });
  }
}

/// Finds the place that vertex v wants to go to. `range`: voxels, in which the probabilities were
/// taken.
LARCH_HD void take_peak(const LevelView& level, const MeshState& s, double range, int v) {
  // Beyond the border the nearest voxel counts, so that what is seen there is no boundary.
  const Peak peak =
      is_inside(level, s.x[v]) ? find_peak(s.probabilities + kDisplacements * v, range) : Peak{};
  s.wanted[v] = peak.voxels * level.scale.spacing_mm;
  s.weights[v] = peak.weight;
  s.best[v] = peak.probability;
}
/// One iteration after the peaks: smooth displacements, shape, fairing, unfolding.
template <class Team>
LARCH_HD void update_mesh(const Team& team, const LevelView& level, const MeshState& s) {
  displace(team, level, s);
  if (level.project > 0) {
    const shape::Similarity at = shape::project(team, level.shape, s.x, s.points, *s.fit);
    set_turn(team, at, s);
    const double* b = s.fit->coefficients;
    const Mat3 turn = rotation_matrix(at.rotation);
    team.each(level.count, [&](int v) {
      const Vec3d shape = shape::placed(at, turn, shape::shape_at(level.shape, b, v));
      s.x[v] = s.x[v] * (1 - level.project) + shape * level.project;
    });
  }
  mesh::implicit_step(team, level.rings, level.count, 2, level.fairing, s.x, s.points, s.part);
  mesh::unfold(team, level.rings, level.count, s.x, s.normals, s.part, s.wanted);
  make_frames(team, level, s);
}

/// The search for the first shape: candidates with kSearchValues values of each of a few modes.
struct SearchView {
  int modes = 0, candidates = 1;
  Vec3d centre{};
  Mat3 turn;
  Vec3d* x = nullptr;              ///< [candidate][vertex]
  float* probabilities = nullptr;  ///< [candidate][vertex]
  double* scores = nullptr;        ///< by candidate: means of ln p
  double* chosen = nullptr;        ///< coefficients
};
LARCH_HD double search_value(const LevelView& level, int candidate, int mode) {
  for (int k = 0; k < mode; ++k) candidate /= kSearchValues;
  const double unit = 2.0 * (candidate % kSearchValues) / (kSearchValues - 1) - 1;
  return unit * kSearchReach * level.shape.deviations[mode];
}
LARCH_HD Vec3d placed_shape(const LevelView& level, const SearchView& search, const double* b,
                            int v) {
  Vec3d at = level.shape.mean[v];
  for (int k = 0; k < search.modes; ++k) {
    at += b[k] * level.shape.modes[k * level.shape.stride + v];
  }
  return search.centre + search.turn * at;
}
LARCH_HD void place_candidate(const LevelView& level, const SearchView& search, int candidate,
                              int v) {
  double b[3];
  for (int k = 0; k < search.modes; ++k) b[k] = search_value(level, candidate, k);
  search.x[candidate * level.count + v] = placed_shape(level, search, b, v);
}
/// Returns the frame of vertex v of a candidate that is placed.
LARCH_HD features::SteerableFrame candidate_frame(const LevelView& level, const SearchView& search,
                                                  int candidate, int v) {
  const Vec3d* x = search.x + candidate * level.count;
  return frame_at(level, search.turn, x[v], mesh::vertex_normal(level.rings[v], x, v));
}
/// The chosen shape is the mean of the candidates, weighted by exp(score / temperature), where the
/// temperature makes about ten of them count.
template <class Team>
LARCH_HD void weigh_candidates(const Team& team, const LevelView& level, const SearchView& search) {
  constexpr double kMinimum = 1e-4, kWanted = 10;
  const int n = search.candidates;
  team.sums(
      n, level.count,
      [&](int c, int v) {
        const double p = search.probabilities[c * level.count + v];
        return log_of(p > kMinimum ? p : kMinimum) / level.count;
      },
      search.scores);
  double highest = search.scores[0];
  for (int c = 1; c < n; ++c) highest = search.scores[c] > highest ? search.scores[c] : highest;
  const auto weight = [&](int c, double temperature) {
    return exp_of((search.scores[c] - highest) / temperature);
  };
  double low = 1e-6, high = 10;
  for (int k = 0; k < 30; ++k) {
    const double middle = sqrt(low * high);
    const double sum = team.sum(n, [&](int c) { return weight(c, middle); });
    const double squares =
        team.sum(n, [&](int c) { return weight(c, middle) * weight(c, middle); });
    if (sum * sum > kWanted * squares) {
      high = middle;
    } else {
      low = middle;
    }
  }
  const double total = team.sum(n, [&](int c) { return weight(c, low); });
  team.sums(
      search.modes, n,
      [&](int k, int c) { return weight(c, low) * search_value(level, c, k) / total; },
      search.chosen);
}
/// The mesh gets the chosen shape; without modes, the mean.
template <class Team>
LARCH_HD void choose_shape(const Team& team, const LevelView& level, const SearchView& search,
                           const MeshState& s) {
  if (search.modes > 0) weigh_candidates(team, level, search);
  team.each(level.count, [&](int v) { s.x[v] = placed_shape(level, search, search.chosen, v); });
}

}  // namespace larch::boundary
