// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/rgb_image.h"

namespace larch::picture {

/// Draws one of the letters R L A P S I (5 x 7 dots of `scale` pixels, white with a black rim), its
/// top left corner at (x, y). Other characters leave the picture as it is, as does what lies
/// outside.
void draw_letter(RgbImage& image, int x, int y, char letter, int scale);

constexpr int kLetterWidth = 5, kLetterHeight = 7;  // dots

}  // namespace larch::picture
