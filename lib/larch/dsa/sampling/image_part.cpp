// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/sampling/image_part.h"

#include <algorithm>

#include "larch/dsa/samples.h"

namespace larch::dsa::cpu {

void ImagePart::take(const uint16_t* image, const Vec3i& size, int32_t x0, int32_t y0,
                     int32_t columns, int32_t rows) {
  if (x0 >= 0 && y0 >= 0 && int64_t{x0} + columns <= size.x && int64_t{y0} + rows <= size.y) {
    stride_ = size.x;
    origin_ = image + y0 * stride_ + x0;
    return;
  }
  stride_ = columns;
  copy_.assign(static_cast<size_t>(stride_ * rows), kNoSample);
  origin_ = copy_.data();
  for (int32_t j = 0; j < rows; ++j) {
    const int32_t y = y0 + j;
    if (y < 0 || y >= size.y) continue;
    const uint16_t* row = image + static_cast<int64_t>(y) * size.x;
    uint16_t* out = copy_.data() + j * stride_;
    const int32_t first = std::clamp(-x0, 0, columns);  // columns in the image
    const int32_t end = std::clamp(size.x - x0, first, columns);
    if (first < end) std::copy(row + (x0 + first), row + (x0 + end), out + first);
  }
}

}  // namespace larch::dsa::cpu
