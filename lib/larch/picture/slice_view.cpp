// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/slice_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace larch::picture {
namespace {

constexpr int kGap = 4;  ///< pixels between two views

/// Returns the index axis that is nearest to each world axis; each is taken once.
std::array<int, 3> index_axis_of_world(const Mat3& direction) {
  std::array<int, 3> out{-1, -1, -1};
  std::array<bool, 3> taken{};
  for (int round = 0; round < 3; ++round) {
    int best_world = -1, best_axis = -1;
    double best = -1;
    for (int world = 0; world < 3; ++world) {
      for (int axis = 0; axis < 3; ++axis) {
        const double size = std::fabs(direction.m[world][axis]);
        if (out[world] < 0 && !taken[axis] && size > best) {
          best = size;
          best_world = world;
          best_axis = axis;
        }
      }
    }
    out[best_world] = best_axis;
    taken[best_axis] = true;
  }
  return out;
}

/// Returns the patient's side that an index axis runs to, forwards or backwards.
char letter_of(const Mat3& direction, int axis, bool backwards) {
  int world = 0;
  for (int w = 1; w < 3; ++w) {
    if (std::fabs(direction.m[w][axis]) > std::fabs(direction.m[world][axis])) world = w;
  }
  const bool positive = (direction.m[world][axis] > 0) != backwards;
  return (positive ? "LPS" : "RAI")[world];
}

Rgb colour_of(int32_t label, const LabelTable& table) {
  for (const LabelEntry& entry : table) {
    const Rgb colour{entry.rgb[0], entry.rgb[1], entry.rgb[2]};
    if (entry.value == label && colour != kBlack) return colour;
  }
  return palette_colour(label);
}

double extent_mm(const Grid& grid, int axis) {
  return grid.size[axis] * grid.spacing_mm[axis];
}

/// Where a pixel lies on an index axis.
double index_at(int pixel, int pixels, int voxels, bool flipped) {
  const double at = (pixel + 0.5) / pixels * voxels - 0.5;
  return flipped ? voxels - 1 - at : at;
}

/// Where an index lies among the pixels; the inverse of index_at.
double pixel_at_index(double index, int pixels, int voxels, bool flipped) {
  const double at = flipped ? voxels - 1 - index : index;
  return (at + 0.5) / voxels * pixels - 0.5;
}

/// Returns the linear interpolation in the slice of what `value` says of voxels; values beyond the
/// outermost voxel centres are repeated.
template <class F>
double interpolated(const SliceView& view, int x, int y, F&& value) {
  const Vec3d at = index_of_pixel(view, x, y);
  const int u = view.across.axis, v = view.down.axis;
  Vec3i voxel;
  voxel[view.normal] = view.position;
  double sum = 0;
  for (int corner = 0; corner < 4; ++corner) {
    double weight = 1;
    for (const auto& [axis, upper] : {std::pair{u, corner & 1}, std::pair{v, corner >> 1}}) {
      const double low = std::floor(at[axis]), t = at[axis] - low;
      weight *= upper ? t : 1 - t;
      voxel[axis] = std::clamp(static_cast<int>(low) + upper, 0, view.grid.size[axis] - 1);
    }
    if (weight > 0) sum += weight * value(voxel);
  }
  return sum;
}

/// The labels of a slice, whose borders are smoothed: the share of a label in a voxel and its eight
/// neighbours, with the weights 1 2 1 along each axis, is one half at its border.
class SmoothLabels {
 public:
  SmoothLabels(const SliceView& view, const LabelVolume& labels) : view_(view), labels_(labels) {}

  /// Returns the labels next to a pixel; none where no border is near. Most pixels lie in the voxel
  /// of the one before.
  const std::vector<int32_t>& labels_about(int x, int y) {
    const Vec3d at = index_of_pixel(view_, x, y);
    Vec3i voxel;
    for (int axis = 0; axis < 3; ++axis) voxel[axis] = static_cast<int>(std::floor(at[axis] + 0.5));
    if (voxel == voxel_before_) return about_before_;
    voxel_before_ = voxel;
    about_before_.clear();
    std::array<int32_t, 9> about{};
    for_each_about(voxel,
                   [&, k = 0](const Vec3i& near, int) mutable { about[k++] = labels_(near); });
    if (std::ranges::count(about, about[0]) == std::ssize(about)) return about_before_;
    std::ranges::sort(about);
    about_before_.assign(about.begin(), std::unique(about.begin(), about.end()));
    return about_before_;
  }

  /// Returns how many pixels a pixel lies inside of a label; negative outside, infinite far away.
  double depth(int32_t label, int x, int y) {
    const auto share_at = [&](int u, int v) {
      return interpolated(view_, u, v, [&](const Vec3i& voxel) { return share(label, voxel); });
    };
    const double here = share_at(x, y);
    const auto slope = [&](int u, int v) {
      return std::max(std::abs(share_at(x + u, y + v) - here),
                      std::abs(share_at(x - u, y - v) - here));
    };
    const double across = slope(1, 0), down = slope(0, 1);
    return (here - 0.5) / std::sqrt(across * across + down * down);
  }

 private:
  /// Calls `f` with a voxel and its neighbours, those at the border of the slice again and again,
  /// and their weights in sixteenths.
  template <class F>
  void for_each_about(const Vec3i& voxel, F&& f) const {
    const int u = view_.across.axis, v = view_.down.axis;
    for (int k = 0; k < 9; ++k) {
      const int du = k % 3 - 1, dv = k / 3 - 1;
      Vec3i at = voxel;
      at[u] = std::clamp(voxel[u] + du, 0, labels_.size()[u] - 1);
      at[v] = std::clamp(voxel[v] + dv, 0, labels_.size()[v] - 1);
      f(at, (2 - std::abs(du)) * (2 - std::abs(dv)));
    }
  }

  int sixteenths(int32_t label, const Vec3i& voxel, bool inside) const {
    int sum = 0;
    for_each_about(voxel, [&](const Vec3i& at, int weight) {
      if ((labels_(at) == label) == inside) sum += weight;
    });
    return sum;
  }

  /// Returns the share of a label in a voxel. What is so small or thin that the smoothing would
  /// remove it stays as it is.
  float share(int32_t label, const Vec3i& voxel) {
    const auto [known, is_new] = shares_[label].try_emplace(labels_.grid().linear(voxel), 0.0F);
    if (!is_new) return known->second;
    const bool inside = labels_(voxel) == label;
    bool is_left = false;
    for_each_about(voxel, [&](const Vec3i& at, int) {
      is_left = is_left || ((labels_(at) == label) == inside && sixteenths(label, at, inside) > 8);
    });
    const float kept = inside ? 0.75F : 0.25F;
    return known->second = is_left ? static_cast<float>(sixteenths(label, voxel, true)) / 16 : kept;
  }

  const SliceView& view_;
  const LabelVolume& labels_;
  Vec3i voxel_before_{-1, -1, -1};
  std::vector<int32_t> about_before_{};
  std::map<int32_t, std::unordered_map<int64_t, float>> shares_{};  // by label and voxel
};

/// Mixes a colour into a pixel.
void blend(RgbImage& image, int x, int y, Rgb colour, double share) {
  const Rgb below = pixel_at(image, x, y);
  const auto mixed = [share](uint8_t from, uint8_t to) {
    return static_cast<uint8_t>(std::lround(from + share * (to - from)));
  };
  put(image, x, y, {mixed(below.r, colour.r), mixed(below.g, colour.g), mixed(below.b, colour.b)});
}

}  // namespace

std::vector<SliceView> orthogonal_views(const Grid& grid, const Vec3i& slices) {
  const std::array<int, 3> axis = index_axis_of_world(grid.direction);
  // Across the screen grows x (to the patient's left) or y (to posterior), down grows y or falls z.
  const auto screen = [&](int world, bool grows) {
    const bool along = grid.direction.m[world][axis[world]] > 0;
    return ScreenAxis{axis[world], along != grows};
  };
  const std::array<SliceView, 3> all{
      SliceView{grid, axis[2], slices[axis[2]], screen(0, true), screen(1, true)},    // axial
      SliceView{grid, axis[1], slices[axis[1]], screen(0, true), screen(2, false)},   // coronal
      SliceView{grid, axis[0], slices[axis[0]], screen(1, true), screen(2, false)}};  // sagittal
  std::vector<SliceView> views;
  for (const SliceView& view : all) {
    const bool line = grid.size[view.across.axis] == 1 || grid.size[view.down.axis] == 1;
    if (!line) views.push_back(view);
  }
  if (views.empty()) views.push_back(all[0]);
  return views;
}

RgbImage lay_out(std::vector<SliceView>& views, int min_width, int most_height) {
  double width_mm = 0, height_mm = 0;
  for (const SliceView& view : views) {
    width_mm += extent_mm(view.grid, view.across.axis);
    height_mm = std::max(height_mm, extent_mm(view.grid, view.down.axis));
  }
  const Vec3d& spacing = views.front().grid.spacing_mm;
  const int gaps = kGap * (static_cast<int>(views.size()) - 1);
  double per_mm =
      std::max((min_width - gaps) / width_mm, 1 / std::min({spacing.x, spacing.y, spacing.z}));
  per_mm = std::min({per_mm, (kMaximumPixels - gaps - 3) / width_mm, most_height / height_mm});
  int left = 0, height = 0;
  for (SliceView& view : views) {
    const auto pixels = [&](int axis) {
      return std::clamp(static_cast<int>(std::ceil(extent_mm(view.grid, axis) * per_mm - 1e-6)), 1,
                        kMaximumPixels);
    };
    view.width = pixels(view.across.axis);
    view.height = pixels(view.down.axis);
    view.left = left;
    left += view.width + kGap;
    height = std::max(height, view.height);
  }
  for (SliceView& view : views) view.top = (height - view.height) / 2;
  return make_canvas(left - kGap, height);
}

Vec3d index_of_pixel(const SliceView& view, int x, int y) {
  const Vec3i& size = view.grid.size;
  Vec3d at;
  at[view.normal] = view.position;
  at[view.across.axis] = index_at(x, view.width, size[view.across.axis], view.across.flipped);
  at[view.down.axis] = index_at(y, view.height, size[view.down.axis], view.down.flipped);
  return at;
}

Seen pixel_of_world(const SliceView& view, const Vec3d& world_mm) {
  const Vec3d index = index_from_world(view.grid, world_mm);
  const Vec3i& size = view.grid.size;
  const auto [across, down] = std::pair{view.across.axis, view.down.axis};
  return {{view.left + pixel_at_index(index[across], view.width, size[across], view.across.flipped),
           view.top + pixel_at_index(index[down], view.height, size[down], view.down.flipped)},
          (index[view.normal] - view.position) * view.grid.spacing_mm[view.normal]};
}

void draw_slice(RgbImage& image, const SliceView& view, const Volume<float>& volume,
                const std::array<double, 2>& window) {
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) {
      const double share =
          (interpolated(view, x, y, [&](const Vec3i& voxel) { return volume(voxel); }) -
           window[0]) /
          (window[1] - window[0]);
      const bool light = share > 0 && std::isfinite(share);
      const auto grey = static_cast<uint8_t>(light ? std::min(share, 1.0) * 255 + 0.5 : 0.0);
      put(image, view.left + x, view.top + y, {grey, grey, grey});
    }
  }
}

void draw_contours(RgbImage& image, const SliceView& view, const LabelVolume& labels,
                   const std::optional<Rgb>& colour, const LabelTable& colours) {
  // Lines lie for the most part inside of their labels, so that those of neighbours are both seen.
  constexpr double kOutside = 0.25, kInside = 1.25;
  SmoothLabels smooth(view, labels);
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) {
      for (const int32_t label : smooth.labels_about(x, y)) {
        if (label == 0) continue;
        const double depth = smooth.depth(label, x, y);
        const double cover = std::min({depth + kOutside + 0.5, kInside - depth + 0.5, 1.0});
        if (!(cover > 0)) continue;
        blend(image, view.left + x, view.top + y, colour.value_or(colour_of(label, colours)),
              cover);
      }
    }
  }
}

void draw_sides(RgbImage& image, const SliceView& view) {
  if (view.grid.frame == WorldFrame::kUnknown) return;
  const int scale = std::clamp(std::min(view.width, view.height) / 130, 1, 4);
  const int width = kLetterWidth * scale, height = kLetterHeight * scale, margin = 2 * scale;
  if (view.width < 3 * width || view.height < 3 * height) return;
  const auto draw = [&](int x, int y, const ScreenAxis& axis, bool start) {
    const char letter = letter_of(view.grid.direction, axis.axis, axis.flipped != start);
    draw_text(image, x, y, {&letter, 1}, scale, kWhite, /*rim=*/true);
  };
  const int middle_x = view.left + (view.width - width) / 2;
  const int middle_y = view.top + (view.height - height) / 2;
  draw(view.left + margin, middle_y, view.across, true);
  draw(view.left + view.width - width - margin, middle_y, view.across, false);
  draw(middle_x, view.top + margin, view.down, true);
  draw(middle_x, view.top + view.height - height - margin, view.down, false);
}

void draw_world_lines(RgbImage& image, const SliceView& view, std::span<const Vec3d> points_mm,
                      Rgb colour) {
  for (size_t i = 1; i < points_mm.size(); ++i) {
    draw_line(image, pixel_of_world(view, points_mm[i - 1]).pixel,
              pixel_of_world(view, points_mm[i]).pixel, colour);
  }
}

void draw_pose(RgbImage& image, const SliceView& view, const Pose& pose, Rgb colour) {
  for (int number = 0; number < 8; ++number) {
    for (const int axis : {1, 2, 4}) {
      if (number & axis) continue;
      const Vec3d edge[] = {corner(pose, number), corner(pose, number | axis)};
      draw_world_lines(image, view, edge, colour);
    }
  }
}

}  // namespace larch::picture
