// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace larch::io {

/// An element with the name that PS3.6 gives it, for messages.
struct DicomTag {
  uint16_t group = 0, element = 0;
  const char* name = "";

  constexpr uint32_t number() const { return uint32_t{group} << 16 | element; }
};

constexpr DicomTag kPixelData{0x7fe0, 0x0010, "PixelData"};

struct DicomItem;

/// One element. All values are views into the bytes of the file.
struct DicomElement {
  uint32_t tag = 0;
  std::array<char, 2> vr{};  ///< value representation; zeros where the syntax does not tell it
  bool is_encapsulated = false;
  bool is_ambiguous = false;     ///< it stood more than once, with different values
  std::string_view value;        ///< empty for a sequence and for encapsulated pixel data
  std::vector<DicomItem> items;  ///< of a sequence
  std::vector<std::string_view> fragments;  ///< of encapsulated pixel data, the offset table first

  bool has_vr(std::string_view name) const { return name == std::string_view(vr.data(), 2); }
};

/// The elements of a file, or of an item of a sequence.
struct DicomDataset {
  std::vector<DicomElement> elements;  ///< in ascending order of their tags, each once
  bool is_big_endian = false;          ///< how numbers are stored
  const std::string* path = nullptr;   ///< of the file, for messages

  /// Null if it is absent. Throws InputError if it stood twice with different values: readers
  /// differ in which of them they take. What nobody asks for may stand twice.
  const DicomElement* find(const DicomTag& tag) const;
};

/// One item of a sequence.
struct DicomItem {
  DicomDataset data;
};

/// Bytes of a file.
struct FilePiece {
  int64_t offset = 0, bytes = 0;
};

/// Where the pixel data of a file stand that were left in it.
struct PixelPlace {
  bool is_encapsulated = false;
  std::array<char, 2> vr{};
  FilePiece native{};                  ///< all frames, one after another
  std::vector<FilePiece> fragments{};  ///< of encapsulated ones, the offset table first
};

/// A file, taken apart.
struct DicomFile {
  std::unique_ptr<const std::string> path, bytes, inflated;  ///< what pointers and views look at
  std::string transfer_syntax;  ///< its UID; that of the implicit or explicit little-endian syntax
                                ///< where the file does not name one
  DicomDataset meta, data;
  std::optional<PixelPlace> place{};  ///< by read_dicom_head: `data` ends before the pixel data
};

/// Reads all elements of a DICOM file (PS3.5, PS3.10), with or without preamble and file meta
/// information, in any native byte order, deflated or encapsulated. A parser of our own: those of
/// the libraries assert on damaged lengths, allocate what a length claims, or fill up what is
/// missing with zeros. The first element tells whether the syntax is implicit or explicit, whatever
/// the file says. Zeros, spaces and line ends behind the pixel data are padding. Throws InputError
/// where tags, lengths, sequences and fragments do not fit into each other and into the file, or
/// where there are so many of them that they would take several times the memory of the file;
/// MemoryError if a deflated file does not fit into the memory.
DicomFile read_dicom_file(const std::string& path);

/// The same without the pixel data and what follows them, of which only the places are found, so
/// that it takes the memory of a header however long the file is. A deflated file, and one without
/// pixel data, is read whole. Throws as read_dicom_file does; MemoryError does not depend on the
/// pixel data.
DicomFile read_dicom_head(const std::string& path);

}  // namespace larch::io
