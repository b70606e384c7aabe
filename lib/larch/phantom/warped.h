// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {

struct WarpedConfig {
  double rotation_deg = 30;
  double shift_mm = 20;
  std::array<double, 2> scale{0.9, 1.1};
  double field_mm = 0;
  double field_sigma_mm = 20;
  double gain = 0.1;
  double bias = 0.1;
  double noise = 0;
  std::array<int, 3> canvas{0, 0, 0};
  std::array<double, 3> spacing_mm{0, 0, 0};
  double feather = 4;
  template <class F>
  void fields(F&& f) {
    f(Field{"rotation_deg", rotation_deg, "largest angle of the turn about a random axis", 0, 180},
      Field{"shift_mm", shift_mm, "largest shift along each axis of the patient", 0, 1e5},
      Field{"scale", scale, "least and largest factor of the size", 0.1, 10},
      Field{"field_mm", field_mm, "standard deviation of the smooth displacements, by axis", 0,
            1e3},
      Field{"field_sigma_mm", field_sigma_mm, "how smooth the displacements are", 1, 1e4},
      Field{"gain", gain,
            "share by which intensities are stretched at most, and of their standard deviation by "
            "which they are shifted at most",
            0, 0.9},
      Field{"bias", bias, "amplitude of the smooth intensity field, as a share", 0, 0.9},
      Field{"noise", noise, "white noise as a share of the image's standard deviation", 0, 100},
      Field{"canvas", canvas, "voxels of the copies along the axes of the image; 0: as it has", 0,
            1024},
      Field{"spacing_mm", spacing_mm, "voxel size of the copies; 0: as the image has", 0, 50},
      Field{"feather", feather,
            "voxels of the image inside of its border over which it passes into noise", 0, 100});
  }
};

/// A warped copy and how it was made.
struct WarpedCase : Sample<Volume<float>> {
  /// The similarity: world_from_input x + translation_mm is where point x of the input (LPS mm)
  /// lies in the copy, without the displacements.
  Mat3 world_from_input{};
  Vec3d translation_mm{};
  double gain = 1, offset = 0;
  /// Component k of the displacements is drawn from the streams field_stream + k.
  uint64_t field_stream = 0;
};

/// Throws UsageError for a range of scales that is upside down.
void check(const WarpedConfig& config);

/// Displacement (mm along the axes of the world) at a place of the canvas, in mm along its axes
/// from the centre of its first voxel: a cubic B-spline with cells of sqrt(3) field_sigma_mm, which
/// is close to normal noise after a Gaussian of field_sigma_mm. Standard deviation field_mm.
Vec3d displacement_mm(const WarpedConfig& config, uint64_t seed, uint64_t stream,
                      const Vec3d& canvas_mm);

/// Copy `number` of an image (of at least 2 voxels along each axis) and its labels on the same
/// grid. Place p of the canvas shows place T^-1(p + d(p)) of the input, T being a random similarity
/// about the centre of the input's grid and d the displacements; the image is interpolated
/// linearly, of labels the nearest counts. Beyond the field of view of the input are label 0 and
/// smoothed noise of the image's mean and standard deviation. The canvas has the axes of the
/// input's grid and the same centre. README.md of this room has the formulas. Only (image, labels,
/// config, seed, number) count. Throws UsageError as check(), and MemoryError if the copy does not
/// fit.
WarpedCase make_warped(const Volume<float>& image, const LabelVolume& labels,
                       const WarpedConfig& config, uint64_t seed, int number, int threads);

}  // namespace larch::phantom
