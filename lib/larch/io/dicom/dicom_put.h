// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gdcmDataSet.h>
#include <gdcmVR.h>

namespace larch::io {

/// A decimal string of at most 16 characters (PS3.5, 6.2).
std::string decimal(double value);
/// Several of them, with backslashes between.
std::string decimals(std::span<const double> values);

/// Puts elements into a data set of GDCM; a value of odd length is padded (PS3.5, 6.2).
class DicomPut {
 public:
  explicit DicomPut(gdcm::DataSet& data) : data_(data) {}

  void text(uint16_t group, uint16_t element, gdcm::VR::VRType type, std::string value);
  void number(uint16_t group, uint16_t element, uint16_t value);
  void numbers(uint16_t group, uint16_t element, gdcm::VR::VRType type,
               std::span<const uint16_t> values);
  void bytes(uint16_t group, uint16_t element, gdcm::VR::VRType type, std::string_view value);
  /// A sequence with these items.
  void sequence(uint16_t group, uint16_t element, const std::vector<gdcm::DataSet>& items);
  bool has(uint16_t group, uint16_t element) const;

 private:
  gdcm::DataSet& data_;
};

}  // namespace larch::io
