// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"

namespace larch {

/// Finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64-bit words.
LARCH_HD uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Counter-based generator: the value depends on the key alone, never on how many were drawn
/// before, so it is the same on every device and for every number of threads.
LARCH_HD uint64_t hash64(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t h = mix64(seed + 0x9e3779b97f4a7c15ULL);
  h = mix64(h ^ (stream + 0x9e3779b97f4a7c15ULL));
  return mix64(h ^ (index + 0x9e3779b97f4a7c15ULL));
}

/// Integer in [0, n) by multiply-high; the bias is below n / 2^32.
LARCH_HD uint32_t hash_below(uint64_t seed, uint64_t stream, uint64_t index, uint32_t n) {
  return static_cast<uint32_t>(((hash64(seed, stream, index) >> 32) * n) >> 32);
}

/// Double in [0, 1) with 53 random bits.
LARCH_HD double hash_unit(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(hash64(seed, stream, index) >> 11) * 0x1.0p-53;
}

}  // namespace larch
