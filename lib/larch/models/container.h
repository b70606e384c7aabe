// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace larch::models {

/// A named piece of a model file.
struct Chunk {
  std::string id;        ///< four characters
  bool required = true;  ///< a reader that does not know it must refuse the file
  std::string payload;
};

constexpr uint16_t kMajorVersion = 1;  ///< readers refuse a higher one
constexpr uint16_t kMinorVersion = 0;  ///< readers accept any

/// The file as a whole, without the closing chunk:
///
///     0   8  "PBTREES\n"         8  2  major     10  2  minor
///     12  4  content flags       16  8  total length in bytes     24  8  number of chunks
///     then chunks: 4 characters, uint32 flags (bit 0: required), uint64 payload length, payload,
///     uint32 crc32c of id..payload, zeros up to a multiple of 8 bytes;
///     last the chunk "END.": SHA-256 of all bytes before it.
///
/// All numbers are little-endian.
struct Container {
  uint16_t major = kMajorVersion, minor = kMinorVersion;
  uint32_t content = 0;
  std::vector<Chunk> chunks;

  const Chunk* find(std::string_view id) const;
  /// Throws InputError when there is none.
  const Chunk& at(std::string_view id) const;
};

std::string encode_container(const Container& container);

/// Checks name, versions, lengths, checksums and digest. Throws InputError that says what is wrong.
Container decode_container(std::string_view bytes);

}  // namespace larch::models
