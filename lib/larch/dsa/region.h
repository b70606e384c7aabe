// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
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

/// Pixels inside.
int64_t count_inside(std::span<const uint8_t> region);

/// The part that a rectangular collimator leaves, from the sum of some frames (of stored values):
/// rows and columns at the edges of the picture are outside while the standard deviation over
/// 15 x 15 pixels around them is below `least_deviation` (of the mean frame) at 98 of 100 of their
/// pixels. A window that reaches past the collimator's edge is not flat any more; what it takes
/// away too little, 7 pixels, is taken away as well. The whole frame if nothing, or everything,
/// looks like a collimator.
Rectangle detect_shutter(std::span<const uint32_t> sum, int32_t frames, const Vec3i& size,
                         double least_deviation);

}  // namespace larch::dsa
