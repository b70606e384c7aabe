// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/overlap.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "larch/core/error.h"

namespace larch::metrics {
namespace {

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
  const int64_t wrong = prediction + reference - 2 * common;
  if (voxels > 0) {
    out.total_correct_fraction = static_cast<double>(voxels - wrong) / static_cast<double>(voxels);
  }
  if (a + b > 0) {
    out.dice = 2 * both / (a + b);
    out.jaccard = both / (a + b - both);
    out.relative_volume_difference = b > 0 ? (a - b) / b : std::numeric_limits<double>::quiet_NaN();
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
  std::sort(out.labels.begin(), out.labels.end(),
            [](const LabelCount& a, const LabelCount& b) { return a.label < b.label; });
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

}  // namespace larch::metrics
