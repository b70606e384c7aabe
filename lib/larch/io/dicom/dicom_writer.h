// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "larch/data/mesh.h"

namespace larch {

/// An element of a DICOM file that a derived file takes over as it is.
struct CopiedElement {
  uint16_t group = 0, element = 0;
  std::array<char, 2> vr{};
  std::string value;  ///< bytes of even length, little-endian
};

/// Returns a unique identifier (PS3.5, B.2: 2.25 and an integer) that `text` alone decides.
std::string dicom_uid(std::string_view text);

namespace io {

constexpr size_t kLongestDecimal = 16;
constexpr size_t kLongestText = 65534;  ///< of a type with a short length

/// Returns a decimal string of at most kLongestDecimal characters (PS3.5, 6.2).
std::string decimal(double value);
/// Several of them, with backslashes between.
std::string decimals(std::span<const double> values);

/// Returns the bytes before the value of an element, in explicit little endian (PS3.5, 7.1.2).
/// `tag`: the group in its upper 16 bits; `vr`: the two letters of the type, of those with a long
/// length OB, OW and SQ.
std::string dicom_element_head(uint32_t tag, std::string_view vr, uint32_t length);

/// The elements of a data set or of an item, put in any order, the last of a tag counts. Tags and
/// types are as in dicom_element_head.
class DicomWriter {
 public:
  /// Padded to an even length, by a zero (UI) or a space (PS3.5, 6.2).
  void text(uint32_t tag, std::string_view vr, std::string value);
  /// A number of the type US.
  void number(uint32_t tag, uint16_t value);
  void numbers(uint32_t tag, std::string_view vr, std::span<const uint16_t> values);
  /// How pixels of one sample are stored (PS3.3, C.7.6.3): in `bits` of so many `allocated` ones.
  /// Grey, with 0 as black.
  void pixels(const Vec3i& size, int allocated, int bits, bool has_sign);
  /// A value of even length as it is.
  void bytes(uint32_t tag, std::string_view vr, std::string_view value);
  /// A sequence with these items, each without a length and with a delimiter.
  void sequence(uint32_t tag, const std::vector<DicomWriter>& items);
  void copies(const std::vector<CopiedElement>& elements);
  bool has(uint32_t tag) const;

  /// Returns the elements in ascending order of their tags, explicit little endian.
  std::string data_set() const;
  /// Returns the same as a file: preamble and file meta information (PS3.10, 7.1), which needs
  /// SOPClassUID and SOPInstanceUID among the elements, stand before them.
  std::string file() const;

 private:
  std::map<uint32_t, std::string> elements_;  ///< encoded, by tag
};

/// At most `bytes` of a text, not ending in the middle of a character of UTF-8.
std::string shortened(const std::string& text, size_t bytes);

/// Returns the item of a sequence of codes (PS3.3, 8.8).
DicomWriter code_item(const Code& code);

/// Returns the item of a sequence that names an instance (PS3.3, 10.3).
DicomWriter reference_item(const std::string& class_uid, const std::string& instance_uid);

/// The same as the source of what is written.
DicomWriter source_item(const std::string& class_uid, const std::string& instance_uid);

}  // namespace io
}  // namespace larch
