// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace larch::io {

/// Returns the value with its bytes in reverse order.
template <class T>
T byte_swapped(T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  std::reverse(bytes, bytes + sizeof(T));
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// Reads numbers at byte offsets of a header. The caller has checked that it is long enough.
struct FieldReader {
  const char* bytes;
  bool swapped;

  template <class T>
  T get(int64_t offset) const {
    T value{};
    std::memcpy(&value, bytes + offset, sizeof(T));
    return swapped ? byte_swapped(value) : value;
  }
};

/// Reverses each group of `width` bytes.
inline void swap_all(std::span<std::byte> bytes, int width) {
  if (width < 2) return;
  const auto step = static_cast<size_t>(width);
  for (size_t i = 0; i + step <= bytes.size(); i += step) {
    std::reverse(bytes.data() + i, bytes.data() + i + step);
  }
}

}  // namespace larch::io
