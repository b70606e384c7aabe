// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/image.h"

// Referring to input and output is enough: then ITK has to link.
bool can_write(const char* path) {
  larch::require_image_extension(path);
  larch::write_volume(path, larch::Volume<float>(larch::Grid{.size = {2, 3, 4}}, 1.5F));
  return larch::read_volume<float>(path).voxels() == 24;
}
[[maybe_unused]] static const bool written = can_write("consumer.nrrd");
