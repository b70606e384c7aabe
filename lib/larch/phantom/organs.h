// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"

namespace larch::phantom {

struct OrgansConfig {
  std::array<int, 3> size{64, 64, 40};
  std::array<double, 3> spacing_mm{2, 2, 3};
  double noise = 25;
  double bias = 0.15;
  template <class F>
  void fields(F&& f) {
    f(Field{"size", size, "voxels along x, y and z", 16, 1024},
      Field{"spacing_mm", spacing_mm, "voxel size along x, y and z", 0.05, 50},
      Field{"noise", noise, "standard deviation of the noise; organs differ by about 100", 0, 1000},
      Field{"bias", bias, "amplitude of the smooth intensity field, as a share", 0, 0.9});
  }
};

/// A volume and the truth about it.
struct OrgansCase {
  Volume<int16_t> image;
  LabelVolume labels;
};

/// A body with textured organs of known shape in a random pose, on a grid centred at the world's
/// origin. Label 1 is the "organ". A "distractor" without label has the same mean and the same
/// spread of intensities and about the same size, so that no intensity window separates the two;
/// the organ differs by a coarser texture, a thin dark capsule and its shape. A bright column, a
/// dark cavity, soft tissue and air are there too. Each case has its own pose, shapes, textures,
/// gain, smooth intensity field (config.bias) and noise.
///
/// Every voxel depends on (seed, number, voxel) alone and is computed without functions that differ
/// between mathematical libraries: the same bytes for any number of threads, on any machine.
/// Throws MemoryError if the volume does not fit.
OrgansCase make_organs(const OrgansConfig& config, uint64_t seed, int number, int threads);

/// Name and colour of the label of make_organs.
LabelTable organs_label_table();

}  // namespace larch::phantom
