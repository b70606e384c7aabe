// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/data/volume.h"

namespace larch {

/// A sequence of 2-D pictures of one place: a cine, an angiogram.
/// Invariant kept by its makers: grid.size.z is 1, pixels has grid.voxels() values for each frame,
/// and times_ms is empty or has one time for each frame, none before the one before it.
struct Frames {
  Grid grid{};                     ///< of every frame
  std::vector<float> pixels{};     ///< frame after frame
  std::vector<double> times_ms{};  ///< when each frame was taken; empty: the file does not say it

  int64_t count() const {
    return pixels.empty() ? 0 : static_cast<int64_t>(pixels.size()) / grid.voxels();
  }
  /// The pixels of one frame, counted from 0.
  VolumeView<const float> frame(int64_t number) const {
    return {pixels.data() + number * grid.voxels(), grid.size};
  }
};

}  // namespace larch
