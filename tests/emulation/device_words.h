// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

// CUDA's operations on words whose bytes or halves are numbers of their own, and on products and
// sums of whole words. Names and meanings are those of the CUDA math API.

namespace larch::emulation {
/// function(part of a, part of b) for each part of so many bits.
template <int kBits, class F>
constexpr uint32_t by_parts(uint32_t a, uint32_t b, const F& function) {
  constexpr uint32_t kPart = (uint64_t{1} << kBits) - 1;
  uint32_t all = 0;
  for (int at = 0; at < 32; at += kBits) {
    all |= function(a >> at & kPart, b >> at & kPart) << at;
  }
  return all;
}
}  // namespace larch::emulation

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
constexpr uint32_t __vminu4(uint32_t a, uint32_t b) {
  return larch::emulation::by_parts<8>(a, b, [](uint32_t x, uint32_t y) { return std::min(x, y); });
}
constexpr uint32_t __vmaxu4(uint32_t a, uint32_t b) {
  return larch::emulation::by_parts<8>(a, b, [](uint32_t x, uint32_t y) { return std::max(x, y); });
}
constexpr uint32_t __vmaxu2(uint32_t a, uint32_t b) {
  return larch::emulation::by_parts<16>(a, b,
                                        [](uint32_t x, uint32_t y) { return std::max(x, y); });
}
/// Byte i of the result is byte (selector >> 4 i & 7) of b:a. The top bit of a selector's digit,
/// which repeats the sign, is not used here.
constexpr uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t all = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t digit = selector >> 4 * i & 7;
    all |= static_cast<uint32_t>(bytes >> 8 * digit & 255) << 8 * i;
  }
  return all;
}
constexpr uint32_t __umulhi(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
/// max(min(a + b, c), 0); the sum wraps.
constexpr int32_t __viaddmin_s32_relu(int32_t a, int32_t b, int32_t c) {
  const auto sum = static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  return std::max(std::min(sum, c), 0);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace larch::emulation {
/// shr.u64, of which the lower word is kept: shifts of 64 and more give 0.
constexpr uint32_t shift_right(uint64_t bits, uint32_t by) {
  return by > 63 ? 0 : static_cast<uint32_t>(bits >> by);
}
}  // namespace larch::emulation
