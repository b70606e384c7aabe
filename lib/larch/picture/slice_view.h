// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/picture/draw.h"

namespace larch::picture {

/// One index axis on the screen.
struct ScreenAxis {
  int axis = 0;
  bool flipped = false;  ///< the index grows to the left or upwards
};

/// A slice of a volume on a rectangle of a picture: index axis `normal` is fixed at `position`; the
/// rectangle is `width` x `height` pixels, its top left corner at (left, top). Pixels are square in
/// mm, up to rounding.
struct SliceView {
  Grid grid{};  ///< of the volume that is shown
  int normal = 2, position = 0;
  ScreenAxis across{0, false}, down{1, false};
  int left = 0, top = 0, width = 0, height = 0;
};

/// Returns the index planes nearest to axial, coronal and sagittal at these slices, without those
/// that would be a line. Axial slices are seen from the feet, coronal ones from the front, sagittal
/// ones from the patient's left. Their rectangles are empty: see lay_out.
std::vector<SliceView> orthogonal_views(const Grid& grid, const Vec3i& slices);

/// Puts the views side by side in one scale and returns the empty picture that holds them: at least
/// `min_width` pixels wide, a pixel per voxel at least, and at most kMaximumPixels wide and
/// `most_height` high, if the volume allows both.
RgbImage lay_out(std::vector<SliceView>& views, int min_width, int most_height = kMaximumPixels);

/// Returns the continuous index in the volume of a pixel of the view's rectangle.
Vec3d index_of_pixel(const SliceView& view, int x, int y);

/// Where a world position (LPS mm) is seen, in pixels of the picture, and how far it lies from the
/// slice, in mm; positive towards higher indices of the normal.
struct Seen {
  Pixel pixel;
  double off_slice_mm = 0;
};
Seen pixel_of_world(const SliceView& view, const Vec3d& world_mm);

/// The slice with linear interpolation, window[0] and below black, window[1] and above white.
/// Voxels that are not finite are black.
void draw_slice(RgbImage& image, const SliceView& view, const Volume<float>& volume,
                const std::array<double, 2>& window);

/// The borders of labels, smoothed by about a voxel and 1.5 pixels wide, for the most part inside
/// of the labels, with soft edges: in `colour`, or in that of each label by the table, or in that
/// of the palette. What is too small or too thin to be left by the smoothing keeps its shape.
void draw_contours(RgbImage& image, const SliceView& view, const LabelVolume& labels,
                   const std::optional<Rgb>& colour, const LabelTable& colours);

/// Letters at the middle of each side that name the patient's right, left, anterior, posterior,
/// superior and inferior, from the direction matrix. None if the frame of the grid is unknown, or
/// if the view is too small.
void draw_sides(RgbImage& image, const SliceView& view);

/// The twelve edges of a box, seen through the slice.
void draw_pose(RgbImage& image, const SliceView& view, const Pose& pose, Rgb colour);

/// The lines from each world position (LPS mm) to the next, seen through the slice.
void draw_world_lines(RgbImage& image, const SliceView& view, std::span<const Vec3d> points_mm,
                      Rgb colour);

}  // namespace larch::picture
