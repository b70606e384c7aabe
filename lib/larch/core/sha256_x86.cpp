// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// SHA-256 by the SHA extensions of x86 processors (Intel, "Intel SHA Extensions", 2013).
#include <immintrin.h>

#include "larch/core/sha256_blocks.h"

namespace larch::detail {
namespace {

/// The words of the state as the instructions take them, the first one highest.
struct Halves {
  __m128i abef, cdgh;
};

__m128i words_at(const uint32_t* words) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
}

/// Four rounds with the words w0 of the message.
void four_rounds(Halves& state, __m128i w0, const uint32_t* constants) {
  const __m128i sums = _mm_add_epi32(w0, words_at(constants));
  // Each instruction does two rounds; what was a, b, e, f is c, d, g, h after them.
  state.cdgh = _mm_sha256rnds2_epu32(state.cdgh, state.abef, sums);
  state.abef = _mm_sha256rnds2_epu32(state.abef, state.cdgh, _mm_shuffle_epi32(sums, 0x0e));
}

/// Returns the next four words of the message schedule, after w0 to w3 of four words each.
__m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
  const __m128i sums = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
  return _mm_sha256msg2_epu32(sums, w3);
}

void one_block(Halves& state, const uint8_t* data) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [&](int at) {
    const auto* words = reinterpret_cast<const __m128i*>(data) + at;
    return _mm_shuffle_epi8(_mm_loadu_si128(words), big_endian);
  };
  const Halves before = state;
  __m128i w0 = load(0), w1 = load(1), w2 = load(2), w3 = load(3);
  const uint32_t* constants = kSha256Rounds.data();
  for (int sixteen = 0; sixteen < 4; ++sixteen, constants += 16) {
    four_rounds(state, w0, constants);
    four_rounds(state, w1, constants + 4);
    four_rounds(state, w2, constants + 8);
    four_rounds(state, w3, constants + 12);
    if (sixteen == 3) break;
    w0 = next_words(w0, w1, w2, w3);
    w1 = next_words(w1, w2, w3, w0);
    w2 = next_words(w2, w3, w0, w1);
    w3 = next_words(w3, w0, w1, w2);
  }
  state.abef = _mm_add_epi32(state.abef, before.abef);
  state.cdgh = _mm_add_epi32(state.cdgh, before.cdgh);
}

}  // namespace

void sha256_blocks_x86(Sha256State& state, const uint8_t* data, size_t blocks) {
  const auto word = [&](size_t i) { return static_cast<int>(state[i]); };
  Halves halves{_mm_set_epi32(word(0), word(1), word(4), word(5)),
                _mm_set_epi32(word(2), word(3), word(6), word(7))};
  for (size_t i = 0; i < blocks; ++i) one_block(halves, data + 64 * i);
  std::array<uint32_t, 4> abef, cdgh;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(abef.data()), halves.abef);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(cdgh.data()), halves.cdgh);
  state = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
}

}  // namespace larch::detail
