// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace larch {

/// Returns a unique identifier (PS3.5, B.2: 2.25 and an integer) that `text` alone decides.
std::string dicom_uid(std::string_view text);

namespace io {

constexpr size_t kLongestDecimal = 16;

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
  /// A value of even length as it is.
  void bytes(uint32_t tag, std::string_view vr, std::string_view value);
  /// A sequence with these items, each without a length and with a delimiter.
  void sequence(uint32_t tag, const std::vector<DicomWriter>& items);
  bool has(uint32_t tag) const;

  /// Returns the elements in ascending order of their tags, explicit little endian.
  std::string data_set() const;
  /// Returns the same as a file: preamble and file meta information (PS3.10, 7.1), which needs
  /// SOPClassUID and SOPInstanceUID among the elements, stand before them.
  std::string file() const;

 private:
  std::map<uint32_t, std::string> elements_;  ///< encoded, by tag
};

}  // namespace io
}  // namespace larch
