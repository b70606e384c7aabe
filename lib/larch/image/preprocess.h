// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"

namespace larch::image {

/// How intensities become integers.
enum class IntensityKind : uint8_t {
  kPercentile = 0,  ///< two percentiles of each volume -> 0 and `steps`: MR, whose scale is free
  kWindow = 1,      ///< a fixed window -> 0 .. `steps`: CT
};
constexpr auto enum_names(IntensityKind*) {
  return std::to_array<EnumName<IntensityKind>>(
      {{IntensityKind::kPercentile, "percentile"}, {IntensityKind::kWindow, "window"}});
}

struct IntensityRule {
  IntensityKind rule = IntensityKind::kPercentile;
  double low_percentile = 1;
  double high_percentile = 99;
  double window_low = -1024;
  double window_high = 3071;
  int steps = 1023;
  double headroom = 0.5;

  template <class F>
  void fields(F&& f) {
    f(Field{"rule", rule, "percentile (of each volume; for MR) or window (fixed; for CT)"},
      Field{"low_percentile", low_percentile, "intensity of this percentile becomes 0", 0, 100},
      Field{"high_percentile", high_percentile, "intensity of this percentile becomes `steps`", 0,
            100},
      Field{"window_low", window_low, "with rule window: intensity that becomes 0"},
      Field{"window_high", window_high, "with rule window: intensity that becomes `steps`"},
      Field{"steps", steps, "integer that the high end maps to", 1, 16383},
      Field{"headroom", headroom, "share of `steps` kept on both sides before values are clipped",
            0, 0.5});
  }
};

/// Which axes the model sees.
enum class Orientation : uint8_t {
  kWorld = 0,  ///< left, posterior, superior; oblique images are resampled onto these axes
  kOwn = 1,    ///< the axes as stored
};
constexpr auto enum_names(Orientation*) {
  return std::to_array<EnumName<Orientation>>(
      {{Orientation::kWorld, "world"}, {Orientation::kOwn, "own"}});
}

/// The space in which a model is trained and evaluated.
struct ModelSpace {
  Vec3d spacing_mm{1, 1, 1};
  Orientation orientation = Orientation::kWorld;
  IntensityRule intensity;
};

/// Returns the grid of model space that covers `input`. With Orientation::kWorld its axes are left,
/// posterior, superior; an image within one degree of them keeps its own axes, permuted and
/// flipped, so that an image of the model's spacing is not interpolated at all. Throws InputError,
/// with `name` (of the file, for the message), when it would have more than kMaximumGrowth times
/// the voxels of the input and more than kHarmlessVoxels: then a spacing or an axis is wrong.
Grid model_grid(const Grid& input, const ModelSpace& space, const std::string& name = "the image");

/// Each axis eight times as fine. Real images stay below: a single oblique slice of 512x512, whose
/// box along the axes of the world is the worst of them, takes 257.
constexpr double kMaximumGrowth = 512;
constexpr double kHarmlessVoxels = 1 << 24;

/// Returns the linear interpolation at a continuous index; beyond the outermost centres their
/// values count. Voxels of weight 0 are not read.
template <class T>
double value_at(const Volume<T>& image, const Vec3d& index);

/// Returns the linear interpolation of `source` at the voxel centres of `target`; where the target
/// is coarser, the mean over a regular pattern of round(ratio) points an axis. Beyond the border
/// the nearest voxel counts. Grids that agree give the same values without interpolation.
Volume<float> resample(const Volume<float>& source, const Grid& target, const Context& context);
/// Nearest neighbour; `outside` beyond half a voxel outside the source.
LabelVolume resample_labels(const LabelVolume& source, const Grid& target, const Context& context,
                            int32_t outside = 0);

/// offset and scale of integer = round_half_even((intensity - offset) * scale), and the clip range.
struct IntensityMap {
  double offset = 0, scale = 1;
  int32_t low = 0, high = 1023;
};
/// Evaluates the rule on a volume. Percentiles are order statistics floor(p / 100 * (n - 1)).
/// A constant volume maps to 0. Throws UsageError for an empty window.
IntensityMap intensity_map(const Volume<float>& image, const IntensityRule& rule);
/// Throws UsageError unless the low end of the rule is below its high end.
void check_rule(const IntensityRule& rule);
/// Clip range of a rule, for the bounds of features.
std::array<int32_t, 2> value_range(const IntensityRule& rule);

/// Image to model space: the intensity rule is evaluated on the input, then it is resampled and
/// quantised. Throws as model_grid does, and MemoryError where the result does not fit.
Volume<int16_t> to_model_space(const Volume<float>& image, const ModelSpace& space,
                               const Context& context, const std::string& name = "the image");

}  // namespace larch::image
