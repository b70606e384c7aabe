// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/data/vec.h"

// The pixels of a frame that count: a region of interest and the part that the collimator leaves.
// A region has one byte per pixel, x fastest: 0 outside, 1 inside. It may be of any frame's size.
namespace larch::dsa {

/// Pixels from (x, y) on.
struct Rectangle {
  int32_t x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

/// A corner of a polygon in pixels; the centre of the first pixel is (0, 0).
struct Corner {
  double x = 0, y = 0;
};

/// The whole frame is inside.
std::vector<uint8_t> whole_region(const Vec3i& size);

/// What lies outside of the rectangle is outside. Throws UsageError for a rectangle that is empty
/// or not within the frame.
void keep_rectangle(std::vector<uint8_t>& region, const Vec3i& size, const Rectangle& rectangle);

/// Pixels whose centre lies outside of the polygon are outside: by the even-odd rule, where a
/// centre on an edge belongs to the side of larger x or y. Throws UsageError for fewer than three
/// corners, coordinates that are not finite, and a polygon that holds no pixel.
void keep_polygon(std::vector<uint8_t>& region, const Vec3i& size, std::span<const Corner> corners);

/// What is 0 in `other` is outside.
void keep_common(std::vector<uint8_t>& region, std::span<const uint8_t> other);

/// Throws UsageError for a region of another number of pixels; one that is empty has all.
void require_region(std::span<const uint8_t> region, size_t pixels);

/// Pixels inside.
int64_t count_inside(std::span<const uint8_t> region);

/// Returns the same; throws InputError, which names the image, if there are none.
int64_t require_inside(std::span<const uint8_t> region, const std::string& name);

/// How the collimator is told from the body.
struct ShutterRule {
  int32_t frames = 1;          ///< that were summed
  double flat = 2;             ///< standard deviation below which rows and columns are flat
  double dark = 0;             ///< mean below which pixels may lie behind the collimator
  double flat_where_dark = 2;  ///< standard deviation of these
  double top = 0;  ///< above 0: contrast agent raises values, and `dark` is the distance from here
};

/// Returns the part of the picture that the collimator leaves, by the sum of some frames of stored
/// values. Flat is judged by the standard deviation of their mean over 15 x 15 pixels. Outside are
/// - rows and columns at the edges of the picture of which 98 of 100 pixels are flat;
/// - flat and dark pixels that are joined with the edge of the picture by others (octagonal and
///   round collimators, the round field of an image intensifier);
/// - and, since a window that reaches past the collimator's edge is not flat any more, what lies
///   within 7 pixels of both.
/// Everything is inside if otherwise nothing were.
std::vector<uint8_t> find_shutter(std::span<const uint32_t> sum, const Vec3i& size,
                                  const ShutterRule& rule);

/// Pixels by which the edge of a collimator is blurred into the part that it leaves open: focal
/// spots are no points. Judged along all rows and columns from where covered pixels (3 at least)
/// turn open and stay so: the grey value, less that 3 pixels behind the edge, is level where it is
/// at least 9/10 of what it is 4 pixels further in. So many pixels on are level on half of the
/// lines; 12 if none are, 0 for fewer than 16 lines. `sum`: of some frames; `open`: by
/// find_shutter, or as a file tells.
int32_t blurred_edge(std::span<const uint32_t> sum, const Vec3i& size,
                     std::span<const uint8_t> open);

/// Leaves out what lies within `width` pixels of covered ones, along each axis; nothing if then
/// nothing were open.
void narrow_open(std::vector<uint8_t>& open, const Vec3i& size, int32_t width);

/// Pixels behind the collimator take the values at its edge, as those beyond the picture do: of the
/// first or last open pixel of their row; rows without one those of the nearest row, the upper one
/// of two. `open`: as find_shutter gives it. Nothing changes if all is covered.
void fill_covered(std::span<uint16_t> frame, const Vec3i& size, std::span<const uint8_t> open);

}  // namespace larch::dsa
