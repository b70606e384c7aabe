// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/qc.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/error.h"
#include "larch/picture/slice_view.h"

namespace larch::picture {
namespace {

/// For each index axis the slice in which most voxels have a label; the middle if none has.
Vec3i best_slices(const LabelVolume& labels, const LabelVolume* reference) {
  const Vec3i size = labels.size();
  for (const LabelVolume* volume : {&labels, reference}) {
    if (volume == nullptr) continue;
    std::array<std::vector<int64_t>, 3> area;
    for (int axis = 0; axis < 3; ++axis) area[axis].assign(size[axis], 0);
    bool any = false;
    for (int64_t i = 0; i < volume->voxels(); ++i) {
      if ((*volume)[i] == 0) continue;
      any = true;
      const Vec3i at = volume->grid().voxel(i);
      for (int axis = 0; axis < 3; ++axis) ++area[axis][at[axis]];
    }
    if (!any) continue;
    Vec3i best;
    for (int axis = 0; axis < 3; ++axis) {
      // Of several slices with the largest area, the middle one.
      const int64_t most = *std::max_element(area[axis].begin(), area[axis].end());
      const int64_t ties = std::count(area[axis].begin(), area[axis].end(), most);
      best[axis] = 0;
      for (int64_t before = (ties - 1) / 2; area[axis][best[axis]] != most || before-- > 0;) {
        ++best[axis];
      }
    }
    return best;
  }
  return {size.x / 2, size.y / 2, size.z / 2};
}

/// Black and white, from quantiles of at most about a million voxels.
std::array<double, 2> window(const Volume<float>& image, const QcOptions& options) {
  const int64_t step = image.voxels() / 1000000 + 1;
  std::vector<float> sample;
  for (int64_t i = 0; i < image.voxels(); i += step) {
    if (std::isfinite(image[i])) sample.push_back(image[i]);
  }
  if (sample.empty()) return {0, 1};
  std::sort(sample.begin(), sample.end());
  const auto quantile = [&](double q) {
    const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sample.size() - 1);
    return static_cast<double>(sample[static_cast<size_t>(std::lround(place))]);
  };
  const double low = quantile(options.window_low), high = quantile(options.window_high);
  return {low, high > low ? high : low + 1};
}

}  // namespace

RgbImage qc_picture(const Volume<float>& image, const LabelVolume& labels,
                    const QcOptions& options) {
  if (image.empty()) throw InputError("picture: the image has no voxels");
  require_on_grid("picture: the label map", labels.grid(), "the image", image.grid());
  if (options.reference != nullptr) {
    require_on_grid("picture: the reference", options.reference->grid(), "the image", image.grid());
  }
  const std::array<double, 2> shown = window(image, options);
  std::vector<SliceView> views =
      orthogonal_views(image.grid(), best_slices(labels, options.reference));
  RgbImage picture = lay_out(views, options.min_width);
  for (const SliceView& view : views) {
    draw_slice(picture, view, image, shown);
    if (options.reference != nullptr) {
      draw_contours(picture, view, *options.reference, kWhite, {});
    }
    draw_contours(picture, view, labels, std::nullopt, options.colours);
    draw_sides(picture, view);
  }
  return picture;
}

}  // namespace larch::picture
