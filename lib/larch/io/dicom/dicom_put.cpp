// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_put.h"

#include <array>
#include <cstdio>

#include <gdcmSequenceOfItems.h>

namespace larch::io {

std::string decimal(double value) {
  std::array<char, 40> text;
  for (int digits = 12; digits > 0; --digits) {
    const int length = std::snprintf(text.data(), text.size(), "%.*g", digits, value + 0.0);
    if (length <= 16) break;
  }
  return text.data();
}

std::string decimals(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : "\\") + decimal(value);
  return text;
}

void DicomPut::text(uint16_t group, uint16_t element, gdcm::VR::VRType type, std::string value) {
  if (value.size() % 2 != 0) value += type == gdcm::VR::UI ? '\0' : ' ';
  bytes(group, element, type, value);
}

void DicomPut::number(uint16_t group, uint16_t element, uint16_t value) {
  numbers(group, element, gdcm::VR::US, std::span(&value, 1));
}

void DicomPut::numbers(uint16_t group, uint16_t element, gdcm::VR::VRType type,
                       std::span<const uint16_t> values) {
  std::string text;
  for (const uint16_t value : values) {
    text += static_cast<char>(value & 0xff);
    text += static_cast<char>(value >> 8);
  }
  bytes(group, element, type, text);
}

void DicomPut::bytes(uint16_t group, uint16_t element, gdcm::VR::VRType type,
                     std::string_view value) {
  gdcm::DataElement one(gdcm::Tag(group, element));
  one.SetVR(type);
  one.SetByteValue(value.data(), gdcm::VL(static_cast<uint32_t>(value.size())));
  data_.Replace(one);
}

void DicomPut::sequence(uint16_t group, uint16_t element, const std::vector<gdcm::DataSet>& items) {
  gdcm::SmartPointer<gdcm::SequenceOfItems> all = new gdcm::SequenceOfItems;
  all->SetLengthToUndefined();
  for (const gdcm::DataSet& data : items) {
    gdcm::Item item;
    item.SetVLToUndefined();
    item.SetNestedDataSet(data);
    all->AddItem(item);
  }
  gdcm::DataElement one(gdcm::Tag(group, element));
  one.SetVR(gdcm::VR::SQ);
  one.SetValue(*all);
  one.SetVLToUndefined();
  data_.Replace(one);
}

bool DicomPut::has(uint16_t group, uint16_t element) const {
  return data_.FindDataElement(gdcm::Tag(group, element));
}

}  // namespace larch::io
