// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch {

/// A colour picture: 3 bytes per pixel (red, green, blue), rows from top to bottom.
/// Invariant kept by its makers: rgb.size() == 3 * width * height.
struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

}  // namespace larch
