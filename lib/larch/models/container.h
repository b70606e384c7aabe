// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "larch/core/digest.h"

namespace larch::models {

constexpr uint16_t kMajorVersion = 1;  ///< of the container; readers refuse a higher one
constexpr uint16_t kMinorVersion = 0;  ///< readers accept any
constexpr size_t kMaximumKindCharacters = 24;
constexpr size_t kMaximumNameCharacters = 255;

/// A named part of a model file.
struct Section {
  std::string bytes;
  bool required = true;  ///< a reader that does not know the section must refuse the file
};

/// A model file of any kind: what is in it, without what it means.
///
/// All numbers in the file are little-endian and unsigned. Three parts follow each other.
///
/// Header, 64 bytes:
///
///      0   8  0x89 "LARCH" 0x0d 0x0a; a transfer that changes ends of lines damages it
///      8   2  major version of the container       10  2  minor version
///     12   4  version of the kind
///     16  24  kind, for example "pbt"; zeros after it
///     40   8  length of the file in bytes
///     48   8  length of the table in bytes, without its digest
///     56   4  number of sections                   60  4  zero
///
/// Table, one entry per section, in strictly ascending order of the names' bytes:
///
///      0  32  SHA-256 of the bytes of the section
///     32   8  length of the section in bytes
///     40   2  flags; bit 0: required; the others are zero
///     42   2  length of the name
///     44   n  name; then zeros up to a multiple of 8 bytes
///
/// and after the last entry 32 bytes, the SHA-256 of header and table. Since the table holds the
/// digests of the sections, this digest stands for the content of the whole file.
///
/// Sections, in the order of the table, each with zeros after it up to a multiple of 8 bytes. The
/// file ends there. A section's place follows from the lengths before it and is not written down,
/// so that sections cannot overlap.
///
/// Kinds and names have lower-case letters, digits and "-", "_", "."; a name may be a path of such
/// parts, for example "trees/3".
///
/// A section that a reader does not know is skipped if it is not required; it is lost when the
/// model is written again. If it is required the file is refused.
struct Container {
  uint16_t major = kMajorVersion, minor = kMinorVersion;
  std::string kind;
  uint32_t kind_version = 1;
  std::map<std::string, Section, std::less<>> sections;

  /// Throws InputError when there is none.
  const Section& at(std::string_view name) const;
};

/// Returns the file. Equal containers give equal bytes. Throws InputError for a kind or a name that
/// the format does not allow.
std::string encode_container(const Container& container);

/// Tells whether a kind is that of trainings that are not finished.
inline bool is_checkpoint(std::string_view kind) {
  return kind.ends_with("-checkpoint");
}

/// Checks the signature, the versions, every length against the bytes that are there, every digest
/// and every zero. Throws InputError that says what is wrong.
Container decode_container(std::string_view bytes);

/// Reads a file as a container, in one pass. The header is checked before the rest is read, so that
/// a large file of something else costs nothing. `digest` receives the SHA-256 of the bytes that
/// are read. Throws InputError.
Container read_container(const std::string& path, const DigestSink& digest = {});

/// Writes a file whole or not at all. Throws OutputError, and InputError as encode_container.
void write_container(const std::string& path, const Container& container);

/// Returns the kind that the header of a file names; empty where it is no container.
std::string kind_of_file(const std::string& path);

/// Names the program that uses a container of this kind, as the end of an error about a wrong one:
/// "hdn-detect reads it".
std::string use_of_kind(std::string_view kind);

}  // namespace larch::models
