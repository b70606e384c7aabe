// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/pose_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace larch::metrics {
namespace {

constexpr double kDegreesPerRadian = 57.295779513082321;

using Polygon = std::vector<Vec3d>;

/// The part of a convex polygon where sign * p[axis] <= limit.
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

/// The integral of (x - x0) n_x over a convex polygon with the unit normal n.
double flux(const Polygon& polygon, double x0) {
  double sum = 0;
  for (size_t i = 2; i < polygon.size(); ++i) {
    const Vec3d &p = polygon[0], &q = polygon[i - 1], &r = polygon[i];
    sum += cross(q - p, r - p).x / 2 * ((p.x + q.x + r.x) / 3 - x0);
  }
  return sum;
}

/// The face of box `a` across an axis, on its low or high side, in the box frame of `b`; seen from
/// outside it goes round to the left on the high side, to the right on the low one.
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

double line_error_mm(const Pose& detected, const Pose& truth) {
  const int axis = longest_axis(truth.edges_mm);
  return std::max(norm(axis_end(detected, axis, -0.5) - axis_end(truth, axis, -0.5)),
                  norm(axis_end(detected, axis, 0.5) - axis_end(truth, axis, 0.5)));
}

double scale_error(const Vec3d& edges, const Vec3d& truth) {
  double sum = 0;
  for (int axis = 0; axis < 3; ++axis) sum += std::abs(edges[axis] / truth[axis] - 1);
  return sum / 3;
}

}  // namespace

double box_iou(const Pose& a, const Pose& b) {
  constexpr double kRounding = 1e-12;  // of the sums, where boxes touch or lie apart
  const double in_a = a.edges_mm.x * a.edges_mm.y * a.edges_mm.z;
  const double in_b = b.edges_mm.x * b.edges_mm.y * b.edges_mm.z;
  const double shared = std::min({shared_mm3(a, b), in_a, in_b});
  return shared > kRounding * std::min(in_a, in_b) ? shared / (in_a + in_b - shared) : 0;
}

PoseScores score_pose(const Pose* detected, const Pose& truth,
                      std::span<const Quaternion> symmetries) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (detected == nullptr) return {kNone, kNone, kNone, kNone, 0, 1};
  const Vec3d& edges = truth.edges_mm;
  PoseScores out{};
  out.centre_error_mm = norm(detected->centre_mm - truth.centre_mm);
  out.line_error_mm = line_error_mm(*detected, truth);
  out.rotation_error_deg = angle_between(detected->rotation, truth.rotation) * kDegreesPerRadian;
  out.scale_error = scale_error(detected->edges_mm, edges);
  for (const Quaternion& symmetry : symmetries) {
    const Pose same = with_axes_renamed(truth, symmetry);
    out.line_error_mm = std::min(out.line_error_mm, line_error_mm(*detected, same));
    const double degrees = angle_between(detected->rotation, same.rotation) * kDegreesPerRadian;
    if (degrees >= out.rotation_error_deg) continue;
    out.rotation_error_deg = degrees;
    out.scale_error = scale_error(detected->edges_mm, same.edges_mm);
  }
  out.box_iou = box_iou(*detected, truth);
  out.failure = out.centre_error_mm > failure_distance_mm(edges) ? 1 : 0;
  return out;
}

StructureScores named_scores(const std::string& structure, const PoseScores& scores) {
  return {structure,
          {{"centre_error_mm", scores.centre_error_mm},
           {"line_error_mm", scores.line_error_mm},
           {"rotation_error_deg", scores.rotation_error_deg},
           {"scale_error", scores.scale_error},
           {"box_iou", scores.box_iou},
           {"failure", scores.failure}}};
}

}  // namespace larch::metrics
