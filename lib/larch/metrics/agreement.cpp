// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/triangle_tree.h"

namespace larch::metrics {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Polygon = std::vector<Vec3d>;

/// Returns the part of a convex polygon where sign * p[axis] <= limit.
Polygon clipped(const Polygon& polygon, int axis, double sign, double limit) {
  Polygon out;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Vec3d &p = polygon[i], &q = polygon[(i + 1) % polygon.size()];
    const double over_p = sign * p[axis] - limit, over_q = sign * q[axis] - limit;
    if (over_p <= 0) out.push_back(p);
    if ((over_p <= 0) != (over_q <= 0)) out.push_back(p + (q - p) * (over_p / (over_p - over_q)));
  }
  return out;
}

/// Returns the integral of (x - x0) n_x over a convex polygon with the unit normal n.
double flux(const Polygon& polygon, double x0) {
  double sum = 0;
  for (size_t i = 2; i < polygon.size(); ++i) {
    const Vec3d &p = polygon[0], &q = polygon[i - 1], &r = polygon[i];
    sum += cross(q - p, r - p).x / 2 * ((p.x + q.x + r.x) / 3 - x0);
  }
  return sum;
}

/// Returns the face of box `a` across an axis, on its low or high side, in the box frame of `b`;
/// seen from outside it goes round to the left on the high side, to the right on the low one.
Polygon face_in_frame(const Pose& a, const Pose& b, int axis, int side) {
  const int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3, base = side << axis;
  Polygon face;
  for (const int number : {base, base + u, base + u + v, base + v}) {
    face.push_back(box_mm_from_world(b, corner(a, number)));
  }
  return face;
}

/// Volume of the intersection. In the frame of `b`, by the divergence theorem, the part of `a` at
/// x <= x0 within the bounds of `b` along y and z has the volume that is the flux of (x - x0, 0, 0)
/// through its surface, of which only the clipped faces of `a` count: there is no flux through cuts
/// across y and z, and the field is 0 on the cut at x0. The intersection is the difference of two
/// such volumes, at the upper and the lower face of `b`.
double shared_mm3(const Pose& a, const Pose& b) {
  const Vec3d half = b.edges_mm / 2;
  double volume = 0;
  for (int axis = 0; axis < 3; ++axis) {
    for (const int side : {0, 1}) {
      Polygon face = face_in_frame(a, b, axis, side);
      for (const int across : {1, 2}) {
        for (const double sign : {-1, 1}) face = clipped(face, across, sign, half[across]);
      }
      const double both =
          flux(clipped(face, 0, 1, half.x), half.x) - flux(clipped(face, 0, 1, -half.x), -half.x);
      volume += side == 1 ? both : -both;
    }
  }
  return volume;
}

}  // namespace

Overlap overlap(int64_t prediction, int64_t reference, int64_t common, int64_t voxels,
                double voxel_mm3) {
  Overlap out;
  out.prediction_voxels = prediction;
  out.reference_voxels = reference;
  out.common_voxels = common;
  const auto a = static_cast<double>(prediction), b = static_cast<double>(reference),
             both = static_cast<double>(common);
  out.prediction_mm3 = a * voxel_mm3;
  out.reference_mm3 = b * voxel_mm3;
  out.volume_difference_mm3 = (a - b) * voxel_mm3;
  out.sensitivity = b > 0 ? both / b : kNone;
  out.precision = a > 0 ? both / a : kNone;
  const int64_t wrong = prediction + reference - 2 * common;
  if (voxels > 0) {
    out.total_correct_fraction = static_cast<double>(voxels - wrong) / static_cast<double>(voxels);
  }
  if (a + b > 0) {
    out.dice = 2 * both / (a + b);
    out.jaccard = both / (a + b - both);
    out.relative_volume_difference = b > 0 ? (a - b) / b : kNone;
  }
  return out;
}

LabelCounts count_labels(const LabelVolume& prediction, const LabelVolume& reference,
                         std::span<const int32_t> ignore) {
  require_on_grid("the prediction", prediction.grid(), "the reference", reference.grid());
  LabelCounts out;
  std::unordered_map<int32_t, size_t> places;
  const auto count_of = [&](int32_t label) -> LabelCount& {
    const auto [place, is_new] = places.try_emplace(label, out.labels.size());
    if (is_new) out.labels.push_back({label});
    return out.labels[place->second];
  };
  for (int64_t i = 0, end = 0; i < prediction.voxels(); i = end) {  // runs along x
    const Vec3i first = prediction.grid().voxel(i);
    const int32_t p = prediction[i], r = reference[i];
    const int64_t row_end = i + prediction.size().x - first.x;
    for (end = i + 1; end < row_end && prediction[end] == p && reference[end] == r;) ++end;
    if (std::find(ignore.begin(), ignore.end(), r) != ignore.end()) continue;
    const int64_t length = end - i;
    const Vec3i last = prediction.grid().voxel(end - 1);
    out.voxels += length;
    LabelCount& found = count_of(p);
    found.prediction += length;
    found.common += p == r ? length : 0;
    found.include(first, last);
    LabelCount& truth = count_of(r);
    truth.reference += length;
    truth.include(first, last);
  }
  std::ranges::sort(out.labels, {}, &LabelCount::label);
  return out;
}

Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values) {
  const std::unordered_set<int32_t> wanted(values.begin(), values.end());
  int32_t last = 0;
  bool is_wanted = wanted.contains(0);
  return mapped<uint8_t>(labels, [&](int32_t label) {
    if (label != last) is_wanted = wanted.contains(last = label);
    return is_wanted;
  });
}

Overlap overlap(const Volume<uint8_t>& prediction, const Volume<uint8_t>& reference) {
  require_on_grid("the prediction", prediction.grid(), "the reference", reference.grid());
  int64_t a = 0, b = 0, common = 0;
  for (int64_t i = 0; i < prediction.voxels(); ++i) {
    const bool in_a = prediction[i] != 0, in_b = reference[i] != 0;
    a += in_a;
    b += in_b;
    common += in_a && in_b;
  }
  return overlap(a, b, common, prediction.voxels(), prediction.grid().voxel_volume_mm3());
}

double box_iou(const Pose& a, const Pose& b) {
  constexpr double kRounding = 1e-12;  // of the sums, where boxes touch or lie apart
  const double in_a = a.edges_mm.x * a.edges_mm.y * a.edges_mm.z;
  const double in_b = b.edges_mm.x * b.edges_mm.y * b.edges_mm.z;
  const double shared = std::min({shared_mm3(a, b), in_a, in_b});
  return shared > kRounding * std::min(in_a, in_b) ? shared / (in_a + in_b - shared) : 0;
}

namespace {

constexpr double kRoundingMm = 1e-9;  // surfaces that coincide are nearer than this
constexpr double kFirstLimitMm = 2;   // above the edges of most marching-cubes surfaces
constexpr double kTakenAsEqualMm = 0.01;
// Pieces of a surface, if they are more than a few for each triangle: at most with the first limit,
// which organs stay below; at first for larger surfaces; and at last. They bound time and memory.
constexpr double kOrganPieces = 1 << 20, kFirstPieces = 1 << 18, kMaximumPieces = 1 << 24;
constexpr double kUndivided = std::numeric_limits<double>::infinity();  // as a limit of edges

struct Element {
  double distance_mm;
  double area_mm2;
};

double distance_mm(const mesh::TriangleTree& to, const Vec3d& point_mm, int32_t& hint) {
  const double distance_mm = to.distance_mm(point_mm, hint);
  return distance_mm < kRoundingMm ? 0 : distance_mm;
}

struct Corners {
  Vec3d a, b, c;

  double area_mm2() const { return norm(cross(b - a, c - a)) / 2; }
  /// Returns the least number of parts of each edge that are not longer than `limit_mm`.
  double parts(double limit_mm) const {
    const double longest_mm = std::max({norm(b - a), norm(c - b), norm(a - c)});
    return std::max(1.0, std::ceil(longest_mm / limit_mm));
  }
};

Corners corners_of(const Mesh& mesh, size_t triangle) {
  const Vec3i& t = mesh.triangles[triangle];
  return {mesh.vertices_mm[t.x], mesh.vertices_mm[t.y], mesh.vertices_mm[t.z]};
}

/// Returns the number of pieces; 0 if they are at most four for each triangle on average.
double divided_pieces(const Mesh& mesh, double limit_mm) {
  double pieces = 0;
  for (size_t i = 0; i < mesh.triangles.size(); ++i) {
    const double parts = corners_of(mesh, i).parts(limit_mm);
    pieces += parts * parts;
  }
  return pieces > 4 * double(mesh.triangles.size()) ? pieces : 0;
}

/// Where the pieces of each triangle begin among all, and their number. Throws MemoryError if it
/// takes division to make them too many.
std::vector<int64_t> pieces_of(const Mesh& mesh, double limit_mm) {
  const double most = limit_mm == kUndivided
                          ? kUndivided
                          : double(free_memory_bytes(Device::cpu())) / double(sizeof(Element));
  std::vector<int64_t> begin{0};
  begin.reserve(mesh.triangles.size() + 1);
  double pieces = 0;
  for (size_t i = 0; i < mesh.triangles.size(); ++i) {
    const double parts = corners_of(mesh, i).parts(limit_mm);
    pieces += parts * parts;
    if (pieces > most) {
      throw MemoryError(
          "there is not enough memory to measure a surface in small pieces; are its coordinates "
          "mm?");
    }
    begin.push_back(static_cast<int64_t>(pieces));
  }
  return begin;
}

/// Cuts a triangle into parts^2 congruent ones. Their centroids have the barycentric coordinates
/// (u, v, w) / (3 parts) where u, v, w all leave the rest 1 (the pieces that lie as the triangle
/// does) or all leave the rest 2 (those that are turned by 180 degrees) when divided by 3.
void measure_pieces(const Corners& t, double limit_mm, const mesh::TriangleTree& to, int32_t& hint,
                    Element* out) {
  const double parts = t.parts(limit_mm), area_mm2 = t.area_mm2() / (parts * parts);
  const auto whole = 3 * static_cast<int64_t>(parts);
  for (const int64_t rest : {1, 2}) {
    for (int64_t v = rest; v < whole; v += 3) {
      for (int64_t w = rest; v + w < whole; w += 3) {
        const auto u = double(whole - v - w);
        const Vec3d centroid_mm = (t.a * u + t.b * double(v) + t.c * double(w)) / double(whole);
        *out++ = {distance_mm(to, centroid_mm, hint), area_mm2};
      }
    }
  }
}

/// Appends the elements of `from` with their distances to the other surface: its triangles, cut
/// into pieces without an edge above `limit_mm`.
void measure(const Mesh& from, const mesh::TriangleTree& to, double limit_mm,
             const Context& context, std::vector<Element>& elements) {
  const std::vector<int64_t> begin_of = pieces_of(from, limit_mm);
  const size_t before = elements.size();
  elements.resize(before + static_cast<size_t>(begin_of.back()));
  const auto body = [&](int64_t begin, int64_t end) {
    int32_t hint = 0;
    for (int64_t i = begin; i < end; ++i) {
      Element* out = elements.data() + before + begin_of[i];
      measure_pieces(corners_of(from, i), limit_mm, to, hint, out);
    }
  };
  const auto count = static_cast<int64_t>(from.triangles.size());
  parallel_for(context.threads, count, fair_grain(context.threads, count, 4096), body);
}

/// Figures of distances, weighted by area.
struct Figures {
  double mean_mm, mean_square_mm2, median_mm, p95_mm, max_mm;
};

/// Sorts the elements.
Figures figures_of(std::span<Element> elements) {
  // Sorted by both members, the sums below have one order whatever the order of the triangles.
  std::ranges::sort(elements, [](const Element& p, const Element& q) {
    return p.distance_mm < q.distance_mm ||
           (p.distance_mm == q.distance_mm && p.area_mm2 < q.area_mm2);
  });
  double area = 0, moment = 0, square = 0;
  for (const Element& e : elements) {
    area += e.area_mm2;
    moment += e.area_mm2 * e.distance_mm;
    square += e.area_mm2 * e.distance_mm * e.distance_mm;
  }
  const auto quantile = [&](double share) {
    double below = 0;
    for (const Element& e : elements) {
      below += e.area_mm2;
      if (below >= share * area) return e.distance_mm;
    }
    return elements.back().distance_mm;
  };
  return {moment / area, square / area, quantile(0.5), quantile(0.95), elements.back().distance_mm};
}

/// Returns the greatest distance of a corner of a triangle from the other surface.
double farthest_corner_mm(const Mesh& from, const mesh::TriangleTree& to, const Context& context) {
  std::vector<uint8_t> is_corner(from.vertices_mm.size());
  for (const Vec3i& t : from.triangles) is_corner[t.x] = is_corner[t.y] = is_corner[t.z] = 1;
  std::vector<double> far_mm(from.vertices_mm.size());
  const auto body = [&](int64_t begin, int64_t end) {
    int32_t hint = 0;
    for (int64_t v = begin; v < end; ++v) {
      if (is_corner[v]) far_mm[v] = distance_mm(to, from.vertices_mm[v], hint);
    }
  };
  parallel_for(context.threads, static_cast<int64_t>(far_mm.size()), 4096, body);
  return *std::max_element(far_mm.begin(), far_mm.end());
}

}  // namespace

SurfaceDistance surface_distance(const Mesh& a, const Mesh& b, const Context& context,
                                 double tolerance_mm) {
  if (a.triangles.empty() && b.triangles.empty()) return {};
  if (a.triangles.empty() || b.triangles.empty()) return {kNone, kNone, kNone, kNone, kNone, 0};
  std::vector<Element> elements;
  elements.reserve(a.triangles.size() + b.triangles.size());
  measure(a, mesh::TriangleTree(b), kUndivided, context, elements);
  measure(b, mesh::TriangleTree(a), kUndivided, context, elements);
  const std::span<Element> all(elements), of_a = all.first(a.triangles.size()),
                                          of_b = all.subspan(a.triangles.size());
  const double hd95_mm = std::max(figures_of(of_a).p95_mm, figures_of(of_b).p95_mm);
  const Figures pooled = figures_of(all);
  double area = 0, near = 0;
  for (const Element& e : elements) {
    area += e.area_mm2;
    near += e.distance_mm <= tolerance_mm + kRoundingMm ? e.area_mm2 : 0;
  }
  return {pooled.mean_mm, pooled.median_mm, pooled.p95_mm, pooled.max_mm, hd95_mm, near / area};
}

MeshDistance mesh_distance(const Mesh& a, const Mesh& b, const Context& context) {
  if (a.triangles.empty() && b.triangles.empty()) return {};
  if (a.triangles.empty() || b.triangles.empty()) return {kNone, kNone, kNone, kNone};
  const mesh::TriangleTree to_a(a), to_b(b);
  const double corners_mm =
      std::max(farthest_corner_mm(a, to_b, context), farthest_corner_mm(b, to_a, context));
  const auto directed = [&](const Mesh& from, const mesh::TriangleTree& to, double limit_mm) {
    std::vector<Element> elements;
    measure(from, to, limit_mm, context, elements);
    return figures_of(elements);
  };
  const auto both = [&](double limit_mm) -> MeshDistance {
    const Figures p = directed(a, to_b, limit_mm), q = directed(b, to_a, limit_mm);
    return {(p.mean_mm + q.mean_mm) / 2, std::sqrt((p.mean_square_mm2 + q.mean_square_mm2) / 2),
            std::max(p.p95_mm, q.p95_mm), std::max({p.max_mm, q.max_mm, corners_mm})};
  };
  // A figure that is no number, as the mean over a surface without area, does not change.
  const auto changes = [](double p, double q) { return std::abs(p - q) >= kTakenAsEqualMm; };
  const auto pieces = [&](double limit_mm) {
    return std::max(divided_pieces(a, limit_mm), divided_pieces(b, limit_mm));
  };
  double limit_mm = kFirstLimitMm;
  if (pieces(limit_mm) > kOrganPieces) {
    while (pieces(limit_mm) > kFirstPieces) limit_mm *= 2;
  }
  for (MeshDistance last = both(limit_mm);;) {
    if (pieces(limit_mm /= 2) > kMaximumPieces) return last;
    const MeshDistance now = both(limit_mm);
    // The maximum has no say: a single place would ask for pieces of 0.01 mm on a whole liver.
    if (!changes(now.mssd_mm, last.mssd_mm) && !changes(now.rms_mm, last.rms_mm) &&
        !changes(now.hd95_mm, last.hd95_mm)) {
      return now;
    }
    last = now;
  }
}

int64_t surface_distance_bytes(const mesh::SurfaceSize& a, const mesh::SurfaceSize& b,
                               const Vec3i& volume, int threads) {
  const int64_t making = std::max(mesh::marching_cubes_bytes(a, volume, threads) + b.bytes(),
                                  mesh::marching_cubes_bytes(b, volume, threads) + a.bytes());
  const int64_t measuring = a.bytes() + b.bytes() +
                            static_cast<int64_t>(sizeof(Element)) * (a.triangles + b.triangles) +
                            mesh::TriangleTree::bytes(std::max(a.triangles, b.triangles));
  return std::max(making, measuring);
}

}  // namespace larch::metrics
