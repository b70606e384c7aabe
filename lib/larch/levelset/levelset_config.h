// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "larch/config/fields.h"
#include "larch/data/vec.h"

namespace larch::levelset {

/// Says what finds the voxels that are computed in a step. Both give the same bits.
enum class Tracker : uint8_t {
  kBrick,    ///< a list of active bricks of 8^3 voxels
  kBuffers,  ///< a list of active voxels by seven buffers, which are compared one after the other:
             ///< Roberts et al. 2010, listing 2 of the supplement; two rounds, for one alone misses
             ///< neighbours across edges, which the curvature reads
};
constexpr auto enum_names(Tracker*) {
  return std::to_array<EnumName<Tracker>>(
      {{Tracker::kBrick, "brick"}, {Tracker::kBuffers, "buffers"}});
}

/// A ball to start from.
struct Sphere {
  Vec3d centre{};     ///< LPS mm, or a continuous index
  double radius = 0;  ///< mm, or voxels of the smallest spacing
  bool is_index = false;
  int32_t label = 1;
};

struct LevelsetConfig {
  Tracker tracker = Tracker::kBrick;
  std::optional<double> lower{}, upper{};
  double curvature_weight = 0.03;
  double time_step = 0;
  double edge_scale_mm = 1;
  double edge_contrast = 0;
  double advection_weight = 0;
  int max_iterations = 10000;
  int unchanged_labels = 200;
  double max_volume_ml = 0;
  double max_distance_mm = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"tracker", tracker, "active bricks, or voxels by the seven buffers of 2010"},
      Field{"lower", lower, "lowest intensity of the structure (default: from the seeds)"},
      Field{"upper", upper, "highest intensity of the structure (default: from the seeds)"},
      Field{"curvature_weight", curvature_weight,
            "weight of the curvature; the data have 1 minus this weight", 0.0, 1.0},
      Field{"time_step", time_step, "in voxels of the smallest spacing; 0: 0.9 of the stable one",
            0.0, 10.0},
      Field{"edge_scale_mm", edge_scale_mm, "Gaussian before edges are measured", 0.0, 20.0},
      Field{"edge_contrast", edge_contrast,
            "gradient (per mm) at which edges count half; 0: median of the image's", 0.0, 1e9},
      Field{"advection_weight", advection_weight, "attraction of edges", 0.0, 10.0},
      Field{"max_iterations", max_iterations, "iterations at most", 0, 1000000000},
      Field{"unchanged_labels", unchanged_labels,
            "stop when no voxel changed its side for so many iterations; 0: never", 0, 1000000},
      Field{"max_volume_ml", max_volume_ml, "stop when the structure is larger; 0: never", 0.0,
            1e9},
      Field{"max_distance_mm", max_distance_mm,
            "the structure stays within this distance of the seeds; 0: no limit", 0.0, 1e6});
  }
};

}  // namespace larch::levelset
