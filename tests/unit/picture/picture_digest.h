// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/core/digest.h"
#include "larch/data/rgb_image.h"

namespace larch::test {

/// The first 16 digits of a digest of size and pixels.
inline std::string digest_of(const RgbImage& image) {
  Sha256 sha;
  const std::string size = std::to_string(image.width) + "x" + std::to_string(image.height) + ":";
  sha.update(size.data(), size.size());
  sha.update(image.rgb.data(), image.rgb.size());
  return hex(sha.digest()).substr(0, 16);
}

}  // namespace larch::test
