// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/features/tap.h"
#include "larch/image/integral.h"

namespace larch::features {

/// Haar features at voxels of one image, from taps that do not depend on its size: for lists of
/// voxels, whose number does not repay tables of offsets. The pointers are of one device.
struct HaarView {
  const Tap* taps = nullptr;
  const uint32_t* first = nullptr;                 ///< tap of each feature; one more at the end
  const image::IntegralLayout* layouts = nullptr;  ///< of the channels
  const uint32_t* integral = nullptr;

  LARCH_HD int32_t value(uint32_t feature, const Vec3i& voxel) const {
    const uint32_t begin = first[feature], end = first[feature + 1];
    const image::IntegralLayout& layout = layouts[taps[begin].channel];
    const uint32_t* at = integral + layout.base(voxel);
    uint32_t sum = 0;
    for (uint32_t t = begin; t < end; ++t) {
      const Tap tap = taps[t];
      sum += static_cast<uint32_t>(tap.weight) * at[layout.linear_offset(tap.dx, tap.dy, tap.dz)];
    }
    return static_cast<int32_t>(sum);
  }
};

}  // namespace larch::features
