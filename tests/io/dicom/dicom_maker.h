// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "larch/data/vec.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::test {

/// Builds small DICOM files (explicit VR, little-endian) byte by byte, PS3.5.
inline std::string dicom_number(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255U);
  return out;
}

inline std::string dicom_element(uint16_t group, uint16_t element, const std::string& vr,
                                 std::string value) {
  if (value.size() % 2 == 1) value += vr == "UI" ? '\0' : ' ';
  const bool is_long = vr == "OB" || vr == "OW" || vr == "SQ" || vr == "UT";
  const auto length = static_cast<uint32_t>(value.size());
  return dicom_number(group, 2) + dicom_number(element, 2) + vr +
         (is_long ? dicom_number(0, 2) + dicom_number(length, 4) : dicom_number(length, 2)) + value;
}

/// One sequence with the given items.
inline std::string dicom_sequence(uint16_t group, uint16_t element,
                                  const std::vector<std::string>& items) {
  std::string value;
  for (const std::string& item : items) {
    value +=
        dicom_number(0xe000fffe, 4) + dicom_number(static_cast<uint32_t>(item.size()), 4) + item;
  }
  return dicom_element(group, element, "SQ", value);
}

/// Encapsulated pixel data (PS3.5, A.4).
inline std::string dicom_fragments(const std::vector<std::string>& fragments,
                                   const std::string& offset_table) {
  const auto item = [](std::string bytes) {
    if (bytes.size() % 2 == 1) bytes += '\0';
    return dicom_number(0xe000fffe, 4) + dicom_number(static_cast<uint32_t>(bytes.size()), 4) +
           bytes;
  };
  std::string out = dicom_number(0x00107fe0, 4) + "OB" + dicom_number(0, 2) + dicom_number(~0U, 4) +
                    item(offset_table);
  for (const std::string& fragment : fragments) out += item(fragment);
  return out + dicom_number(0xe0ddfffe, 4) + dicom_number(0, 4);
}

inline std::string decimal(const Vec3d& v) {
  return std::to_string(v.x) + "\\" + std::to_string(v.y) + "\\" + std::to_string(v.z);
}

/// What a made-up slice says; change what the test is about.
struct MadeSlice {
  std::string series = "1.2.3.4", modality = "CT", description = "made up";
  std::string sop_class = "1.2.840.10008.5.1.4.1.1.2";
  Vec3d position{0, 0, 0}, row{1, 0, 0}, column{0, 1, 0};
  bool with_geometry = true;
  uint16_t columns = 4, rows = 3;
  std::string spacing = "2.0\\0.5";  // between rows, between columns
  std::string thickness = "3";
  std::string slope = "2", intercept = "-1000";
  uint16_t bits_allocated = 16, bits_stored = 16, samples = 1, is_signed = 1;
  std::string photometric = "MONOCHROME2";
  std::vector<int16_t> values;  // filled with 0, 1, 2, ... when empty
  int first_value = 0;
  std::string raw_pixels;   // instead of values
  int frames = 0;           // 0: no such element
  std::string groups;       // functional groups, or other elements after (0028,1053), already built
  int high_bit = -1;        // of bits_stored, if negative
  std::string frames_text;  // instead of frames
  std::string patient = "P1", study = "1.2.3", reference_frame, image_type, between_slices;
  std::string imager_spacing, csa;
  bool with_rescale = true;
  std::string syntax = "1.2.840.10008.1.2.1";
  std::vector<std::string> fragments;  // encapsulated pixel data, instead of values
  std::string offset_table;
};

inline std::string made_dicom(const MadeSlice& s) {
  const std::string uid = s.series + "." + std::to_string(s.first_value + 1);
  std::string meta = dicom_element(2, 1, "OB", std::string("\0\1", 2)) +
                     dicom_element(2, 2, "UI", s.sop_class) + dicom_element(2, 3, "UI", uid) +
                     dicom_element(2, 0x10, "UI", s.syntax) +
                     dicom_element(2, 0x12, "UI", "1.2.3.99");
  std::string out = std::string(128, '\0') + "DICM" +
                    dicom_element(2, 0, "UL", dicom_number(static_cast<uint32_t>(meta.size()), 4)) +
                    meta;
  const auto us = [](uint16_t value) { return dicom_number(value, 2); };
  if (!s.image_type.empty()) out += dicom_element(8, 8, "CS", s.image_type);
  out += dicom_element(8, 0x16, "UI", s.sop_class) + dicom_element(8, 0x18, "UI", uid) +
         dicom_element(8, 0x60, "CS", s.modality) + dicom_element(8, 0x103e, "LO", s.description) +
         dicom_element(0x10, 0x20, "LO", s.patient) + dicom_element(0x18, 0x50, "DS", s.thickness);
  if (!s.between_slices.empty()) out += dicom_element(0x18, 0x88, "DS", s.between_slices);
  if (!s.imager_spacing.empty()) out += dicom_element(0x18, 0x1164, "DS", s.imager_spacing);
  out += dicom_element(0x20, 0x0d, "UI", s.study) + dicom_element(0x20, 0x0e, "UI", s.series);
  if (s.with_geometry) {
    out += dicom_element(0x20, 0x32, "DS", decimal(s.position)) +
           dicom_element(0x20, 0x37, "DS", decimal(s.row) + "\\" + decimal(s.column));
  }
  if (!s.reference_frame.empty()) out += dicom_element(0x20, 0x52, "UI", s.reference_frame);
  out += dicom_element(0x28, 2, "US", us(s.samples)) + dicom_element(0x28, 4, "CS", s.photometric);
  if (s.samples > 1) out += dicom_element(0x28, 6, "US", us(0));
  const std::string frames = s.frames > 0 ? std::to_string(s.frames) : s.frames_text;
  if (!frames.empty()) out += dicom_element(0x28, 8, "IS", frames);
  out +=
      dicom_element(0x28, 0x10, "US", us(s.rows)) + dicom_element(0x28, 0x11, "US", us(s.columns));
  if (s.with_geometry) out += dicom_element(0x28, 0x30, "DS", s.spacing);
  out += dicom_element(0x28, 0x100, "US", us(s.bits_allocated)) +
         dicom_element(0x28, 0x101, "US", us(s.bits_stored)) +
         dicom_element(0x28, 0x102, "US",
                       us(static_cast<uint16_t>(s.high_bit < 0 ? s.bits_stored - 1 : s.high_bit))) +
         dicom_element(0x28, 0x103, "US", us(s.is_signed));
  if (s.with_rescale) {
    out +=
        dicom_element(0x28, 0x1052, "DS", s.intercept) + dicom_element(0x28, 0x1053, "DS", s.slope);
  }
  if (!s.csa.empty()) out += dicom_element(0x29, 0x1010, "OB", s.csa);
  out += s.groups;
  if (!s.fragments.empty()) return out + dicom_fragments(s.fragments, s.offset_table);
  std::vector<int16_t> values = s.values;
  const size_t count = s.raw_pixels.empty() ? size_t{s.rows} * s.columns *
                                                  static_cast<size_t>(s.frames > 0 ? s.frames : 1)
                                            : 0;
  for (int i = 0; values.size() < count; ++i) {
    values.push_back(static_cast<int16_t>(s.first_value + i));
  }
  std::string pixels = s.raw_pixels;
  if (pixels.empty()) {
    pixels.assign(reinterpret_cast<const char*>(values.data()), values.size() * 2);
  }
  return out + dicom_element(0x7fe0, 0x10, "OW", pixels);
}

}  // namespace larch::test
