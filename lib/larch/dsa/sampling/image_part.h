// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/data/vec.h"

namespace larch::dsa::cpu {

/// A rectangle of an image that may reach beyond it: a view where it does not, otherwise a copy.
class ImagePart {
 public:
  /// The rectangle of `columns` x `rows` pixels from (x0, y0) on. Pixels beyond the image are
  /// kNoSample.
  void take(const uint16_t* image, const Vec3i& size, int32_t x0, int32_t y0, int32_t columns,
            int32_t rows);
  /// A pixel from (x0, y0), and those behind it in its row.
  const uint16_t* at(int32_t x, int32_t y) const { return origin_ + y * stride_ + x; }
  int64_t stride() const { return stride_; }

 private:
  const uint16_t* origin_ = nullptr;
  int64_t stride_ = 0;
  std::vector<uint16_t> copy_{};
};

}  // namespace larch::dsa::cpu
