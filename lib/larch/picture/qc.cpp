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
#include "larch/picture/draw.h"
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
      // The middle one of several slices with the largest area is shown.
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

constexpr int kPoseWidth = 900, kMargin = 5;
constexpr int kLetters = 2;                           // scale of texts of poses
constexpr int kLine = kLetters * kLetterHeight + 10;  // of such a text, with room around it

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

/// Returns the slices nearest to a world position.
Vec3i slices_at(const Grid& grid, const Vec3d& world_mm) {
  const Vec3d at = index_from_world(grid, world_mm);
  Vec3i slices;
  for (int axis = 0; axis < 3; ++axis) {
    const double last = grid.size[axis] - 1;
    slices[axis] = static_cast<int>(std::lround(std::clamp(at[axis], 0.0, last)));
  }
  return slices;
}

void draw_box_of(RgbImage& picture, const SliceView& view, const Pose& pose, Rgb colour) {
  draw_pose(picture, view, pose, colour);
  const int axis = longest_axis(pose.edges_mm);
  const Vec3d line[] = {axis_end(pose, axis, -0.5), axis_end(pose, axis, 0.5)};
  draw_world_lines(picture, view, line, colour);
  draw_point(picture, pixel_of_world(view, pose.centre_mm).pixel, 2, colour);
}

/// Puts a picture into another.
void paste(RgbImage& picture, int left, int top, const RgbImage& own) {
  for (int y = 0; y < own.height; ++y) {
    for (int x = 0; x < own.width; ++x) put(picture, left + x, top + y, pixel_at(own, x, y));
  }
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
  RgbImage picture = lay_out(views, options.min_width, options.most_height);
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

RgbImage stacked(std::span<const RgbImage> pictures, std::span<const std::string> titles) {
  int width = 0, height = 0;
  for (const RgbImage& one : pictures) {
    width = std::max(width, one.width), height += one.height + kLine;
  }
  RgbImage all = make_canvas(width, height);
  int top = 0;
  for (size_t i = 0; i < pictures.size(); ++i) {
    draw_text(all, kMargin, top + kMargin, titles[i], kLetters, kWhite);
    paste(all, 0, top + kLine, pictures[i]);
    top += kLine + pictures[i].height;
  }
  return all;
}

int most_stacked(int height) {
  return kMaximumPixels / (height + kLine);
}

RgbImage pose_picture(const Volume<float>& image, const std::string& title,
                      std::span<const PoseRow> rows) {
  if (image.empty()) throw InputError("picture: the image has no voxels");
  const Grid& grid = image.grid();
  std::vector<PoseRow> all(rows.begin(), rows.end());
  const auto has_pose = [](const PoseRow& row) { return row.pose.has_value(); };
  auto with_slices = static_cast<int>(std::count_if(all.begin(), all.end(), has_pose));
  const bool shows_middle = with_slices == 0;
  if (shows_middle) all.push_back({"the middle of the image"}), with_slices = 1;
  const int texts = kLine * (static_cast<int>(all.size()) + 1);
  const Vec3i middle{grid.size.x / 2, grid.size.y / 2, grid.size.z / 2};
  std::vector<SliceView> views = orthogonal_views(grid, middle);
  const RgbImage row = lay_out(views, kPoseWidth, (kMaximumPixels - texts) / with_slices);
  RgbImage picture = make_canvas(std::max(row.width, kPoseWidth), texts + with_slices * row.height);
  const std::array<double, 2> shown = window(image, {});
  draw_text(picture, kMargin, kMargin, title, kLetters, kWhite);
  int top = kLine;
  for (const PoseRow& one : all) {
    draw_text(picture, kMargin, top + kMargin, one.name, kLetters, one.colour);
    draw_text(picture, kMargin + text_width(one.name + "  ", kLetters), top + kMargin, one.status,
              kLetters, one.status_colour);
    top += kLine;
    if (!one.pose && !(shows_middle && &one == &all.back())) continue;
    const Vec3i slices = one.pose ? slices_at(grid, one.pose->centre_mm) : middle;
    for (SliceView view : views) {
      // A canvas of its own cuts what would run into the neighbours of a view.
      const int left = view.left, down = view.top;
      view.left = view.top = 0;
      view.position = slices[view.normal];
      RgbImage own = make_canvas(view.width, view.height);
      draw_slice(own, view, image, shown);
      if (one.pose) draw_box_of(own, view, *one.pose, one.colour);
      draw_sides(own, view);
      paste(picture, left, top + down, own);
    }
    top += row.height;
  }
  return picture;
}

namespace {

constexpr int kSide = 220, kTitle = 18;  ///< pixels of a tile

Vec3d middle_of(const Mesh& surface, double& longest) {
  Vec3d low = surface.vertices_mm.at(0), high = low;
  for (const Vec3d& p : surface.vertices_mm) widen(low, high, p);
  longest = std::max({longest, high.x - low.x, high.z - low.z});
  return (low + high) * 0.5;
}

/// The triangle a, b, c in pixels, x and z on the picture and y the depth.
void draw_triangle(RgbImage& image, std::vector<double>& depth, const Vec3d& a, const Vec3d& b,
                   const Vec3d& c) {
  const Vec3d normal = cross(b - a, c - a);
  const double length = norm(normal);
  if (!(length > 0) || normal.y == 0) return;
  constexpr Vec3d kLight{-0.4, -0.7, -0.6};  // z grows downwards on the picture
  const double shade = std::abs(dot(normal, kLight)) / length;
  const auto grey = static_cast<uint8_t>(60 + 190 * std::min(shade, 1.0));
  const auto first = [](double p, double q, double r) {
    return static_cast<int>(std::ceil(std::min({p, q, r})));
  };
  const auto last = [](double p, double q, double r) {
    return static_cast<int>(std::floor(std::max({p, q, r})));
  };
  for (int z = std::max(first(a.z, b.z, c.z), 0);
       z <= std::min(last(a.z, b.z, c.z), image.height - 1); ++z) {
    for (int x = std::max(first(a.x, b.x, c.x), 0);
         x <= std::min(last(a.x, b.x, c.x), image.width - 1); ++x) {
      const auto side = [&](const Vec3d& p, const Vec3d& q) {
        return (q.x - p.x) * (z - p.z) - (q.z - p.z) * (x - p.x);
      };
      const double ab = side(a, b), bc = side(b, c), ca = side(c, a);
      if (!((ab >= 0 && bc >= 0 && ca >= 0) || (ab <= 0 && bc <= 0 && ca <= 0))) continue;
      const double y = a.y - (normal.x * (x - a.x) + normal.z * (z - a.z)) / normal.y;
      double& nearest =
          depth[static_cast<size_t>(z) * static_cast<size_t>(image.width) + static_cast<size_t>(x)];
      if (y >= nearest) continue;
      nearest = y;
      put(image, x, z, {grey, grey, static_cast<uint8_t>(grey * 4 / 5)});
    }
  }
}

}  // namespace

RgbImage surface_picture(std::span<const SurfaceTile> tiles, int columns) {
  const auto count = static_cast<int>(tiles.size());
  const int rows = (count + columns - 1) / columns;
  RgbImage image = make_canvas(columns * kSide, rows * (kSide + kTitle));
  double longest = 1e-9;
  std::vector<Vec3d> middles;
  for (const SurfaceTile& tile : tiles) middles.push_back(middle_of(tile.surface, longest));
  std::vector<double> depth(static_cast<size_t>(image.width) * static_cast<size_t>(image.height),
                            1e300);
  const double scale = 0.9 * kSide / longest;
  for (int i = 0; i < count; ++i) {
    const SurfaceTile& tile = tiles[static_cast<size_t>(i)];
    const int left = i % columns * kSide, top = i / columns * (kSide + kTitle);
    const auto place = [&](int v) {
      const Vec3d at =
          (tile.surface.vertices_mm[static_cast<size_t>(v)] - middles[static_cast<size_t>(i)]) *
          scale;
      return Vec3d{left + kSide / 2.0 + at.x, at.y, top + kTitle + kSide / 2.0 - at.z};
    };
    for (const Vec3i& t : tile.surface.triangles) {
      draw_triangle(image, depth, place(t.x), place(t.y), place(t.z));
    }
    draw_text(image, left + 4, top + 4, tile.title, 1, kWhite);
  }
  return image;
}

}  // namespace larch::picture
