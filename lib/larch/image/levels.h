// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/image/channel_math.h"

namespace larch::image {

/// A voxel with its differences I(+1) - I(-1) along x, y and z, 0 where a neighbour is missing:
/// what is interpolated at poses. Intensities up to 3/2 * 16383 keep the differences inside 16
/// bits.
struct alignas(8) Texel {
  int16_t intensity = 0, dx = 0, dy = 0, dz = 0;
};

LARCH_HD Texel texel_at(const VolumeView<const int16_t>& v, const Vec3i& at) {
  const auto difference = [&](int axis) {
    if (at[axis] == 0 || at[axis] + 1 == v.size[axis]) return int16_t{0};
    Vec3i low = at, high = at;
    --low[axis];
    ++high[axis];
    return static_cast<int16_t>(v(high) - v(low));
  };
  return {v(at), difference(0), difference(1), difference(2)};
}

/// Places along one axis of the images of a pyramid, in mm from the first voxel of the finest one:
/// voxel i of a level lies at first_mm + i * spacing_mm, since each halving moves the first voxel
/// by half a voxel.
struct LevelScale {
  double first_mm = 0, spacing_mm = 1;

  LARCH_HD double voxel(double mm) const { return (mm - first_mm) / spacing_mm; }
  LARCH_HD double mm(double voxel) const { return first_mm + voxel * spacing_mm; }
};
/// After `halvings` halvings of voxels of `finest_mm`.
LARCH_HD LevelScale level_scale(double finest_mm, int halvings) {
  const double factor = static_cast<double>(1 << halvings);
  return {finest_mm * (factor - 1) / 2, finest_mm * factor};
}

/// The part of a grid in model space of which there is image: all of it, unless the image is stored
/// obliquely, so that the grid is the box around it.
struct ImageExtent {
  int32_t is_part = 0;
  Vec3d first, step[3];  ///< index of the image: first + sum of mm[axis] * step[axis]
  Vec3d size;            ///< voxels of the image

  /// `mm`: along the axes of the grid, from its first voxel.
  LARCH_HD bool holds(const Vec3d& mm) const {
    if (is_part == 0) return true;
    const Vec3d at = first + step[0] * mm.x + step[1] * mm.y + step[2] * mm.z;
    for (int axis = 0; axis < 3; ++axis) {
      if (!(at[axis] >= -0.5 && at[axis] <= size[axis] - 0.5)) return false;
    }
    return true;
  }
};
ImageExtent extent_of(const Grid& image, const Grid& model);

/// Returns the value of a list by level, whose last value holds for finer levels.
template <class T>
T by_level(const std::vector<T>& values, int level) {
  return values[std::min(static_cast<size_t>(level), values.size() - 1)];
}

/// An image at one resolution of a pyramid, on one device.
struct LevelImage {
  Vec3i size{};
  Buffer<int16_t> voxels;  ///< for box sums
  Buffer<Texel> texels;    ///< for samples at poses, and one more; empty if they are not wanted
  ImageExtent extent{};    ///< of all levels
};

/// Images 0 (as it is) to `halvings`, each the rounded mean of 2x2x2 voxels of the one before
/// (pyramid_voxel), on context.device. Texels are made of all levels from `first_texels` on.
/// `voxels` is on the host and is copied to the device once. Throws MemoryError.
std::vector<LevelImage> make_levels(VolumeView<const int16_t> voxels, int halvings,
                                    int first_texels, const Context& context,
                                    const ImageExtent& extent = {});

/// One step of it on one device: `coarse` from `fine`, if `coarse.data` is not null, and the texels
/// of `fine`, if `texels` is not null.
struct LevelJob {
  VolumeView<const int16_t> fine;
  VolumeView<int16_t> coarse;
  Texel* texels = nullptr;
};
void make_level(const LevelJob& job, const Context& context);
namespace cuda {
void make_level(const LevelJob& job, const Context& context);
}

}  // namespace larch::image
