// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/config/fields.h"
#include "larch/core/mesh.h"
#include "larch/core/volume.h"

namespace larch::phantom {

struct OrgansConfig {
  int size_x = 64;
  int size_y = 64;
  int size_z = 40;
  double spacing_xy_mm = 2.0;
  double spacing_z_mm = 3.0;
  double noise = 25;
  double bias = 0.15;
  template <class F>
  void fields(F&& f) {
    f(Field{"size_x", size_x, "voxels", 16, 1024}, Field{"size_y", size_y, "voxels", 16, 1024},
      Field{"size_z", size_z, "voxels", 16, 1024},
      Field{"spacing_xy_mm", spacing_xy_mm, "voxel size in the slice", 0.05, 50.0},
      Field{"spacing_z_mm", spacing_z_mm, "slice distance", 0.05, 50.0},
      Field{"noise", noise, "standard deviation of the noise; organs differ by about 100", 0.0,
            1000.0},
      Field{"bias", bias, "amplitude of the smooth intensity field, as a share", 0.0, 0.9});
  }
};

/// A volume and the truth about it.
struct OrgansCase {
  Volume<int16_t> image;
  LabelVolume labels;
};

/// A body with textured organs of known shape in a random pose. Label 1 ("target") and an
/// unlabelled distractor have the same mean intensity, so that no threshold separates them; they
/// differ in texture, shape and neighbourhood. Label 2 ("vessel") is a bright tube beside the
/// target. Every value depends on (seed, number, voxel) alone: the same bytes for any number of
/// threads.
OrgansCase make_organs(const OrgansConfig& config, uint64_t seed, int number, int threads);

/// Names and colours of the labels of make_organs.
LabelTable organs_label_table();

}  // namespace larch::phantom
