// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/head.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/noise_math.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {
namespace {

constexpr double kWhite = 1000, kGrey = 720, kFluid = 300, kSkull = 60, kScalp = 850, kAir = 10;
constexpr double kTurn = 6.283185307179586;
/// Mean slope of a gyroid where it is 0, per unit of phase: turns its value into a distance.
constexpr double kGyroidSlope = 1.35;

/// Draws of one head; each has its own stream.
struct Draw {
  uint64_t seed, number;
  uint64_t stream(uint64_t of) const { return number * 1000 + 500 + of; }
  double operator()(uint64_t of, uint64_t index) const {
    return hash_signed(seed, stream(of), index);
  }
};

struct Ellipsoid {
  Vec3d centre_mm, radii_mm;
  /// About the signed distance to the surface in mm, negative inside.
  double distance_mm(const Vec3d& p) const {
    const Vec3d d = p - centre_mm;
    const Vec3d q{d.x / radii_mm.x, d.y / radii_mm.y, d.z / radii_mm.z};
    return (norm(q) - 1) * std::min({radii_mm.x, radii_mm.y, radii_mm.z});
  }
};

struct Head {
  Draw draw;
  Ellipsoid scalp, skull, fluid, brain, left_ventricle, right_ventricle;
  double cortex_mm, fold_mm, depth_mm, sulcus_mm, edge_mm;
  Vec3d bias_turns;  ///< of the intensity field, per mm
  double bias_phase;
};

Head make_anatomy(const HeadConfig& config, const Draw& draw) {
  Vec3d half_mm;
  double edge_mm = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<size_t>(axis);
    half_mm[axis] = 0.5 * config.size[k] * config.spacing_mm[k];
    edge_mm = std::max(edge_mm, config.spacing_mm[k]);
  }
  const auto shell = [&](double share) {
    Ellipsoid e{{}, half_mm};
    for (int axis = 0; axis < 3; ++axis) {
      e.radii_mm[axis] *= share * (1 + 0.03 * draw(0, static_cast<uint64_t>(axis)));
    }
    return e;
  };
  const auto ventricle = [&](double side) {
    return Ellipsoid{{side * 0.11 * half_mm.x, 0.04 * half_mm.y, 0.06 * half_mm.z},
                     {0.055 * half_mm.x, 0.22 * half_mm.y, 0.12 * half_mm.z}};
  };
  Head head{draw,
            shell(0.92),
            shell(0.84),
            shell(0.79),
            shell(0.75),
            ventricle(-1),
            ventricle(1),
            config.cortex_mm,
            config.fold_mm,
            0,
            0,
            edge_mm,
            {},
            0};
  head.depth_mm = 0.55 * config.fold_mm;
  head.sulcus_mm = 0.25 * config.cortex_mm;
  for (int axis = 0; axis < 3; ++axis) {
    head.bias_turns[axis] = 0.35 * draw(1, static_cast<uint64_t>(axis)) / half_mm[axis];
  }
  head.bias_phase = 0.05 * draw(1, 3);
  return head;
}

/// sin x cos y + sin y cos z + sin z cos x at a place in turns: its zeros are one smooth sheet that
/// folds through all of space (Schoen 1970).
double gyroid(const Vec3d& t) {
  return sine_of_turns(t.x) * cosine_of_turns(t.y) + sine_of_turns(t.y) * cosine_of_turns(t.z) +
         sine_of_turns(t.z) * cosine_of_turns(t.x);
}

/// Distance in mm below the pial surface, which dips into the sulci: those are a bent gyroid, down
/// to a depth below the hull of the brain.
double depth_below_pia_mm(const Head& head, const Vec3d& p) {
  const double below_hull = -head.brain.distance_mm(p);
  Vec3d turns;
  for (int axis = 0; axis < 3; ++axis) {
    const auto k = static_cast<uint64_t>(axis);
    const double bend = value_noise(head.draw.seed, head.draw.stream(10 + k), p / head.fold_mm);
    turns[axis] = p[axis] / head.fold_mm + 0.3 * bend + head.draw(2, k);
  }
  const double beside_sheet = std::fabs(gyroid(turns)) * head.fold_mm / (kTurn * kGyroidSlope);
  const double below_end = std::max(0.0, below_hull - head.depth_mm);
  const double from_sulcus =
      std::sqrt(beside_sheet * beside_sheet + below_end * below_end) - head.sulcus_mm;
  return std::min(below_hull, from_sulcus);
}

struct Seen {
  double value;
  Tissue tissue;
};

Seen tissue_at(const Head& head, const Vec3d& p) {
  const double edge = head.edge_mm;
  double value = blend(kAir, kScalp, head.scalp.distance_mm(p), edge);
  value = blend(value, kSkull, head.skull.distance_mm(p), edge);
  const double fluid_mm = head.fluid.distance_mm(p);
  value = blend(value, kFluid, fluid_mm, edge);
  if (fluid_mm > edge) return {value, Tissue::kNone};
  const double depth = depth_below_pia_mm(head, p);
  const double ventricle_mm =
      std::min(head.left_ventricle.distance_mm(p), head.right_ventricle.distance_mm(p));
  value = blend(value, kGrey, -depth, edge);
  value = blend(value, kWhite, head.cortex_mm - depth, edge);
  value = blend(value, kFluid, ventricle_mm, edge);
  const Tissue tissue = fluid_mm >= 0                   ? Tissue::kNone
                        : ventricle_mm < 0 || depth < 0 ? Tissue::kFluid
                        : depth < head.cortex_mm        ? Tissue::kGreyMatter
                                                        : Tissue::kWhiteMatter;
  return {value, tissue};
}

}  // namespace

HeadCase make_head(const HeadConfig& config, uint64_t seed, int number, int threads) {
  const Grid grid = centred_grid(config.size, config.spacing_mm);
  HeadCase out = blank_case<HeadCase>(grid);
  const Head head = make_anatomy(config, {seed, static_cast<uint64_t>(number)});
  const double deviation = config.snr > 0 ? kWhite / config.snr : 0;
  parallel_for_each(threads, grid.voxels(), 8192, [&](int64_t i) {
    const Vec3d p = world_from_index(grid, grid.voxel(i).cast<double>());
    const Seen seen = tissue_at(head, p);
    const double turns = head.bias_turns.x * p.x + head.bias_turns.y * p.y +
                         head.bias_turns.z * p.z + head.bias_phase;
    double value = (1 + 0.5 * config.bias * sine_of_turns(turns)) * seen.value;
    if (deviation > 0) {
      const auto at = static_cast<uint64_t>(i);
      const double real = value + deviation * draw_normal(seed, head.draw.stream(4), at);
      const double imaginary = deviation * draw_normal(seed, head.draw.stream(5), at);
      value = std::sqrt(real * real + imaginary * imaginary);
    }
    constexpr double kMaximum = std::numeric_limits<int16_t>::max();
    out.image[i] = static_cast<int16_t>(std::nearbyint(std::min(value, kMaximum)));
    out.labels[i] = static_cast<uint8_t>(seen.tissue);
  });
  return out;
}

LabelTable head_label_table() {
  return {{1, "white matter", {240, 240, 220}},
          {2, "grey matter", {200, 110, 90}},
          {3, "cerebrospinal fluid", {70, 130, 220}}};
}

}  // namespace larch::phantom
