// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {

struct HeadConfig {
  std::array<int, 3> size{128, 128, 128};
  std::array<double, 3> spacing_mm{1.5, 1.5, 1.5};
  double cortex_mm = 3;
  double fold_mm = 30;
  double snr = 20;
  double bias = 0.2;
  template <class F>
  void fields(F&& f) {
    f(Field{"size", size, "voxels along x, y and z", 16, 1024},
      Field{"spacing_mm", spacing_mm, "voxel size along x, y and z", 0.05, 50},
      Field{"cortex_mm", cortex_mm, "thickness of the grey matter", 0.1, 100},
      Field{"fold_mm", fold_mm, "wavelength of the folds", 1, 1000},
      Field{"snr", snr,
            "mean of the white matter over the standard deviation of the noise; 0: no noise", 0,
            1e6},
      Field{"bias", bias, "range of the smooth intensity field, as a share", 0, 0.9});
  }
};

/// Labels of the tissues of a head.
enum class Tissue : uint8_t { kNone = 0, kWhiteMatter = 1, kGreyMatter = 2, kFluid = 3 };

using HeadCase = Sample<Volume<int16_t>>;

/// Returns a head as in T1-weighted MR: white matter, folded grey matter around it, fluid in the
/// sulci, around the brain and in two ventricles, skull, scalp and air, on a grid centred at the
/// world's origin (axes LPS) that the head fills. Partial volume at all surfaces, a smooth
/// intensity field between 1 - bias / 2 and 1 + bias / 2, and the Rician noise of magnitude images.
/// Labels are those of Tissue. README.md of this room has the formulas.
///
/// Every voxel depends on (seed, number, voxel) alone and is computed without functions that differ
/// between mathematical libraries; other snr and bias show the same head. Throws MemoryError if the
/// volume does not fit.
HeadCase make_head(const HeadConfig& config, uint64_t seed, int number, int threads);

/// Names and colours of the labels of make_head.
LabelTable head_label_table();

}  // namespace larch::phantom
