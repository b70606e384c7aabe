// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "larch/core/error.h"
#include "larch/core/sha256_blocks.h"

namespace larch {
namespace detail {

const std::array<uint32_t, 64> kSha256Rounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

namespace {
void one_block(Sha256State& state, const uint8_t* data) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{data[4 * i]} << 24 | uint32_t{data[4 * i + 1]} << 16 |
           uint32_t{data[4 * i + 2]} << 8 | data[4 * i + 3];
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kSha256Rounds[i] + w[i];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const Sha256State add{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += add[i];
}
}  // namespace

void sha256_blocks_portable(Sha256State& state, const uint8_t* data, size_t blocks) {
  for (size_t i = 0; i < blocks; ++i) one_block(state, data + 64 * i);
}

std::span<const Sha256Blocks> all_sha256_blocks() {
#ifdef __x86_64__
  static constexpr Sha256Blocks kAll[] = {sha256_blocks_portable, sha256_blocks_x86};
  constexpr unsigned kFeatures = 7, kShaBit = 29;  // which __builtin_cpu_supports does not know
  unsigned a = 0, b = 0, c = 0, d = 0;
  static const bool has_sha = __builtin_cpu_supports("sse4.1") &&
                              __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 &&
                              (b >> kShaBit & 1) != 0;
  return std::span(kAll).first(has_sha ? 2 : 1);
#else
  static constexpr Sha256Blocks kAll[] = {sha256_blocks_portable};
  return kAll;
#endif
}

}  // namespace detail

void Sha256::update(const void* data, size_t bytes) {
  const auto* in = static_cast<const uint8_t*>(data);
  const detail::Sha256Blocks work_in = detail::all_sha256_blocks().back();
  while (bytes > 0) {
    const size_t used = bytes_ % 64;
    if (used == 0 && bytes >= 64) {
      const size_t whole = bytes / 64 * 64;
      work_in(state_, in, whole / 64);
      in += whole, bytes -= whole, bytes_ += whole;
      continue;
    }
    const size_t take = std::min(bytes, 64 - used);
    std::memcpy(pending_.data() + used, in, take);
    in += take, bytes -= take, bytes_ += take;
    if (bytes_ % 64 == 0) work_in(state_, pending_.data(), 1);
  }
}

std::array<uint8_t, 32> Sha256::digest() const {
  Sha256 last = *this;
  const uint64_t bits = bytes_ * 8;
  const uint8_t one = 0x80, zero = 0;
  last.update(&one, 1);
  while (last.bytes_ % 64 != 56) last.update(&zero, 1);
  std::array<uint8_t, 8> length{};
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  last.update(length.data(), 8);
  std::array<uint8_t, 32> out{};
  for (size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<uint8_t>(last.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return out;
}

std::string hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  return hex(sha.digest());
}

std::string sha256_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot read '" + path + "'");
  Sha256 sha;
  std::vector<char> piece(1 << 16);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    sha.update(piece.data(), static_cast<size_t>(file.gcount()));
  }
  return hex(sha.digest());
}

}  // namespace larch
