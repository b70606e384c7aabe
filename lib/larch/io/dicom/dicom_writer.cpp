// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_writer.h"

#include <bit>
#include <utility>

#include "larch/core/digest.h"
#include "larch/core/text.h"

namespace larch {

static_assert(std::endian::native == std::endian::little);

namespace io {
namespace {

constexpr uint32_t kUndefinedLength = 0xffffffff;
constexpr size_t kShortHead = 8;  ///< bytes before the value of an element with a short length

template <class T>
std::string number_bytes(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// Returns the group first.
std::string tag_bytes(uint32_t tag) {
  return number_bytes(std::rotl(tag, 16));
}

/// Returns an item or a delimiter (PS3.5, 7.5), which have no type.
std::string item_head(uint32_t tag, uint32_t length) {
  return tag_bytes(tag) + number_bytes(length);
}

}  // namespace

std::string decimal(double value) {
  std::string text = number_text(value + 0.0, 12);
  for (int digits = 11; digits > 0 && text.size() > kLongestDecimal; --digits) {
    text = number_text(value + 0.0, digits);
  }
  return text;
}

std::string decimals(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : "\\") + decimal(value);
  return text;
}

std::string dicom_element_head(uint32_t tag, std::string_view vr, uint32_t length) {
  const bool has_short_length = vr != "OB" && vr != "OW" && vr != "SQ";
  if (has_short_length && length <= 0xffff) {
    return tag_bytes(tag) + std::string(vr) + number_bytes(static_cast<uint16_t>(length));
  }
  // What is too long for its type has none (PS3.5, 6.2.2, note on UN).
  return tag_bytes(tag) + (has_short_length ? "UN" : std::string(vr)) + std::string(2, '\0') +
         number_bytes(length);
}

void DicomWriter::text(uint32_t tag, std::string_view vr, std::string value) {
  if (value.size() % 2 != 0) value += vr == "UI" ? '\0' : ' ';
  bytes(tag, vr, value);
}

void DicomWriter::number(uint32_t tag, uint16_t value) {
  numbers(tag, "US", std::span(&value, 1));
}

void DicomWriter::numbers(uint32_t tag, std::string_view vr, std::span<const uint16_t> values) {
  bytes(tag, vr, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

void DicomWriter::pixels(const Vec3i& size, int allocated, int bits, bool has_sign) {
  number(0x0028'0002, 1);  // SamplesPerPixel
  text(0x0028'0004, "CS", "MONOCHROME2");
  number(0x0028'0010, static_cast<uint16_t>(size.y));
  number(0x0028'0011, static_cast<uint16_t>(size.x));
  number(0x0028'0100, static_cast<uint16_t>(allocated));
  number(0x0028'0101, static_cast<uint16_t>(bits));
  number(0x0028'0102, static_cast<uint16_t>(bits - 1));  // HighBit
  number(0x0028'0103, has_sign ? 1 : 0);
}

void DicomWriter::bytes(uint32_t tag, std::string_view vr, std::string_view value) {
  std::string& element = elements_[tag];
  element = dicom_element_head(tag, vr, static_cast<uint32_t>(value.size()));
  element += value;
}

void DicomWriter::sequence(uint32_t tag, const std::vector<DicomWriter>& items) {
  std::string& element = elements_[tag];
  element = dicom_element_head(tag, "SQ", kUndefinedLength);
  for (const DicomWriter& item : items) {
    element += item_head(0xfffe'e000, kUndefinedLength) + item.data_set();
    element += item_head(0xfffe'e00d, 0);
  }
  element += item_head(0xfffe'e0dd, 0);
}

void DicomWriter::copies(const std::vector<CopiedElement>& elements) {
  for (const CopiedElement& element : elements) {
    bytes(uint32_t{element.group} << 16 | element.element, {element.vr.data(), 2}, element.value);
  }
}

bool DicomWriter::has(uint32_t tag) const {
  return elements_.contains(tag);
}

std::string DicomWriter::data_set() const {
  std::string all;
  for (const auto& [tag, element] : elements_) all += element;
  return all;
}

std::string DicomWriter::file() const {
  DicomWriter meta;
  meta.bytes(0x0002'0001, "OB", std::string("\0\1", 2));
  meta.bytes(0x0002'0002, "UI", elements_.at(0x0008'0016).substr(kShortHead));
  meta.bytes(0x0002'0003, "UI", elements_.at(0x0008'0018).substr(kShortHead));
  meta.text(0x0002'0010, "UI", "1.2.840.10008.1.2.1");  // explicit little endian
  meta.text(0x0002'0012, "UI", dicom_uid("Larch's writer of DICOM files"));
  meta.text(0x0002'0013, "SH", "LARCH");
  const std::string about = meta.data_set();
  return std::string(128, '\0') + "DICM" + dicom_element_head(0x0002'0000, "UL", 4) +
         number_bytes(static_cast<uint32_t>(about.size())) + about + data_set();
}

std::string shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

DicomWriter code_item(const Code& code) {
  DicomWriter item;
  item.text(0x0008'0100, "SH", code.value);
  item.text(0x0008'0102, "SH", code.scheme);
  item.text(0x0008'0104, "LO", code.meaning);
  return item;
}

DicomWriter reference_item(const std::string& class_uid, const std::string& instance_uid) {
  DicomWriter item;
  item.text(0x0008'1150, "UI", class_uid);
  item.text(0x0008'1155, "UI", instance_uid);
  return item;
}

DicomWriter source_item(const std::string& class_uid, const std::string& instance_uid) {
  DicomWriter item = reference_item(class_uid, instance_uid);
  item.sequence(  // PurposeOfReferenceCodeSequence
      0x0040'a170, {code_item({"DCM", "121322", "Source image for image processing operation"})});
  return item;
}

}  // namespace io

std::string dicom_uid(std::string_view text) {
  Sha256 sha;
  sha.update(text.data(), text.size());
  const auto digest = sha.digest();
  // 1 and 36 decimal digits: below 2^128, as the integers of UUIDs are.
  std::string uid = "2.25.1";
  for (size_t half = 0; half < 2; ++half) {
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | digest[8 * half + i];
    uid +=
        formatted("%018llu", static_cast<unsigned long long>(bits % 1'000'000'000'000'000'000ULL));
  }
  return uid;
}

}  // namespace larch
