// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace larch {

/// SHA-256 (FIPS 180-4), fed in pieces.
class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  /// Returns the digest of all that was fed; the object may be fed further afterwards.
  std::array<uint8_t, 32> digest() const;

 private:
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t bytes_ = 0;
};

/// Lower-case hexadecimal.
std::string hex(std::span<const uint8_t> bytes);

/// Returns the SHA-256 of bytes in memory as hexadecimal.
std::string sha256_of(std::string_view bytes);

/// Returns the SHA-256 of a file's bytes as hexadecimal; throws InputError if it cannot be read.
std::string sha256_of_file(const std::string& path);

/// Receives the SHA-256 of a file that is read whole, so that nobody reads it again for it; may be
/// empty.
using DigestSink = std::function<void(const std::string& path, const std::string& sha256)>;

}  // namespace larch
