// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace larch::test {

/// A marker segment of a JPEG file (ITU-T T.81).
inline std::string segment(int marker, const std::string& body) {
  const size_t length = body.size() + 2;
  return std::string{'\xff', static_cast<char>(marker), static_cast<char>(length >> 8),
                     static_cast<char>(length & 255)} +
         body;
}

/// A scan of coefficients `first` to `last`, from which bit `high` was known, down to bit `low`.
inline std::string scan(int first, int last, int high, int low, size_t bytes) {
  const std::string band{static_cast<char>(first), static_cast<char>(last),
                         static_cast<char>(high << 4 | low)};
  return segment(0xda, std::string("\1\1\0", 3) + band) + std::string(bytes, '\0');
}

/// A grey progressive picture: all coefficients are held until its two scans are read. In both, the
/// code of "nothing here" has zero bits alone. `bits`: in so many scans per coefficient, if given.
inline std::string progressive_jpeg(int edge, int bits = 0) {
  const auto blocks = static_cast<size_t>(edge / 8) * static_cast<size_t>(edge / 8);
  const std::string size{static_cast<char>(edge >> 8), static_cast<char>(edge & 255)};
  const std::string none(14, '\0');
  std::string rest = bits == 0 ? scan(1, 63, 0, 0, blocks / 8) : "";
  for (int k = 1; bits > 0 && k < 64; ++k) {
    rest += scan(k, k, 0, bits - 1, blocks / 8);
    for (int low = bits - 2; low >= 0; --low) rest += scan(k, k, low + 1, low, blocks / 8);
  }
  return "\xff\xd8" + segment(0xdb, std::string(1, '\0') + std::string(64, '\x10')) +
         segment(0xc2, "\x08" + size + size + std::string("\1\1\x11\0", 4)) +
         segment(0xc4, std::string("\0\0\2", 3) + none + std::string("\0\4", 2)) +
         segment(0xc4, std::string("\x10\1\0", 3) + none + std::string(1, '\0')) +
         scan(0, 0, 0, 0, blocks * 2 / 8) + rest + "\xff\xd9";
}

/// A picture of 32 x 32 samples in one scan, by its process: 0 baseline, 1 extended, 3 lossless.
/// All codes are zero bits and say "no difference". `ids` are the numbers of its components,
/// `factors` the sampling factors of the first.
inline std::string blank_jpeg(int process, int precision, const std::string& ids = "\1",
                              char factors = '\x11') {
  const auto count = static_cast<char>(ids.size());
  std::string frame{static_cast<char>(precision), 0, 32, 0, 32, count}, parts{count};
  for (size_t i = 0; i < ids.size(); ++i) {
    frame += {ids[i], i == 0 ? factors : '\x11', 0};
    parts += {ids[i], 0};
  }
  const bool lossless = process == 3;
  const std::string band = lossless ? std::string("\1\0\0", 3) : std::string("\0\x3f\0", 3);
  const size_t bits = (lossless ? 32 * 32 : 16 * 2) * ids.size();  // two for each block of 8 x 8
  const std::string none(15, '\0');
  return "\xff\xd8" + segment(0xdb, std::string(1, '\0') + std::string(64, '\x10')) +
         segment(0xc0 + process, frame) +
         segment(0xc4, std::string("\0\1", 2) + none + std::string(1, '\0')) +
         segment(0xc4, std::string("\x10\1", 2) + none + std::string(1, '\0')) +
         segment(0xda, parts + band) + std::string(bits / 8, '\0') + "\xff\xd9";
}

}  // namespace larch::test
