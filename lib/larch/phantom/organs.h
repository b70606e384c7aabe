// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {

struct OrgansConfig {
  std::array<int, 3> size{64, 64, 40};
  std::array<double, 3> spacing_mm{2, 2, 3};
  double noise = 25;
  double bias = 0.15;
  std::string axes = "LPS";
  std::array<double, 3> rotation_deg{0, 0, 0};
  template <class F>
  void fields(F&& f) {
    f(Field{"size", size, "voxels along x, y and z; 1 along z: a 2-D image", 1, 1024},
      Field{"spacing_mm", spacing_mm, "voxel size along x, y and z", 0.05, 50},
      Field{"noise", noise, "standard deviation of the noise; organs differ by about 100", 0, 1000},
      Field{"bias", bias, "amplitude of the smooth intensity field, as a share", 0, 0.9},
      Field{"axes", axes,
            "where x, y and z of the voxels point: a letter each of L or R, P or A, S or I"},
      Field{"rotation_deg", rotation_deg,
            "turns of the voxel grid about the x, y and z axes of the patient, in this order", -180,
            180});
  }
};

/// Throws UsageError unless `axes` names each axis of the patient once and each side of `size` has
/// at least 16 voxels, or one along z.
void check(const OrgansConfig& config);

/// Tells whether `axes` and the turns make a left-handed grid, which DICOM cannot hold.
bool is_left_handed(const OrgansConfig& config);

using OrgansCase = Sample<Volume<int16_t>>;

/// Returns a body with textured organs of known shape in a random pose, on a grid centred at the
/// world's origin. Label 1 is the "organ". A "distractor" without label has the same mean and the
/// same spread of intensities and about the same size, so that no intensity window separates the
/// two; the organ differs by a coarser texture, a thin dark capsule and its shape. A bright column,
/// a dark cavity, soft tissue and air are there too. Each case has its own pose, shapes, textures,
/// gain, smooth intensity field (config.bias) and noise.
///
/// With other `axes` the same voxels come in another order: the image shows the same body at the
/// same places. With `rotation_deg` the grid is turned about its centre and the body is sampled at
/// other places. A 2-D image is the slice through the middle of a body.
///
/// Every voxel depends on (seed, number, voxel) alone and is computed without functions that differ
/// between mathematical libraries: the same bytes for any number of threads, on any machine.
/// Throws UsageError as check() does, MemoryError if the volume does not fit.
OrgansCase make_organs(const OrgansConfig& config, uint64_t seed, int number, int threads);

/// Name and colour of the label of make_organs.
LabelTable organs_label_table();

}  // namespace larch::phantom
