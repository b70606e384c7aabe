// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "larch/picture/draw.h"

// Moving pictures as GIF 89a, which every browser, viewer and word processor shows. The same
// pictures are the same bytes everywhere.
namespace larch::picture {

/// Greys of an animation, evenly from black to white; fewer than a picture has, since noise in the
/// last digits is what makes a file large.
constexpr int kAnimationGreys = 96;
/// Colours beside them.
constexpr int kAnimationColours = 32;

/// Returns the beginning of a file: size, colours, and that it is shown without end. `colours` are
/// kept as they are; pixels of other colours get the nearest one or the nearest grey. Throws
/// UsageError for sizes that make_canvas refuses and for more than kAnimationColours colours.
std::string gif_header(int width, int height, std::span<const Rgb> colours);

/// Returns one picture, shown for `delay_ms` (rounded to 10 ms, at least 20: viewers slow down what
/// is faster). `colours`: those of the header. Throws std::logic_error unless image.rgb.size() == 3
/// * width * height.
std::string gif_frame(const RgbImage& image, std::span<const Rgb> colours, double delay_ms);

/// The end of a file.
std::string gif_end();

}  // namespace larch::picture
