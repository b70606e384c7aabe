// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/slice_view.h"

#include <algorithm>
#include <cmath>
#include <string>
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

int32_t label_at(const SliceView& view, const LabelVolume& labels, int x, int y) {
  const Vec3d at = index_of_pixel(view, x, y);
  Vec3i voxel;
  for (int axis = 0; axis < 3; ++axis) {
    voxel[axis] =
        std::clamp(static_cast<int>(std::floor(at[axis] + 0.5)), 0, labels.size()[axis] - 1);
  }
  return labels(voxel);
}

/// Returns the linear interpolation in the slice; values beyond the outermost voxel centres are
/// repeated.
double value_at(const SliceView& view, const Volume<float>& image, int x, int y) {
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
      voxel[axis] = std::clamp(static_cast<int>(low) + upper, 0, image.size()[axis] - 1);
    }
    if (weight > 0) sum += weight * image(voxel);
  }
  return sum;
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
      const double share = (value_at(view, volume, x, y) - window[0]) / (window[1] - window[0]);
      const bool light = share > 0 && std::isfinite(share);
      const auto grey = static_cast<uint8_t>(light ? std::min(share, 1.0) * 255 + 0.5 : 0.0);
      put(image, view.left + x, view.top + y, {grey, grey, grey});
    }
  }
}

void draw_contours(RgbImage& image, const SliceView& view, const LabelVolume& labels,
                   const std::optional<Rgb>& colour, const LabelTable& colours) {
  std::vector<int32_t> shown(static_cast<size_t>(view.width) * static_cast<size_t>(view.height));
  const auto at = [&](int x, int y) -> int32_t& {
    return shown[static_cast<size_t>(y) * static_cast<size_t>(view.width) + static_cast<size_t>(x)];
  };
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) at(x, y) = label_at(view, labels, x, y);
  }
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) {
      const int32_t label = at(x, y);
      const bool rim = (x > 0 && at(x - 1, y) != label) || (y > 0 && at(x, y - 1) != label) ||
                       (x + 1 < view.width && at(x + 1, y) != label) ||
                       (y + 1 < view.height && at(x, y + 1) != label);
      if (label != 0 && rim) {
        put(image, view.left + x, view.top + y, colour.value_or(colour_of(label, colours)));
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
