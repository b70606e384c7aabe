// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_derived.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "larch/io/dicom/dicom_image.h"

namespace larch::io {
namespace {

constexpr CopiedRow kEquipment[] = {
    {{0x0008, 0x0070, "Manufacturer"}, "LO"},
    {{0x0008, 0x0080, "InstitutionName"}, "LO"},
    {{0x0008, 0x1010, "StationName"}, "SH"},
    {{0x0008, 0x1090, "ManufacturerModelName"}, "LO"},
    {{0x0018, 0x1000, "DeviceSerialNumber"}, "LO"},
    {{0x0018, 0x1020, "SoftwareVersions"}, "LO"},
};

}  // namespace

bool may_have_vr(const DicomElement& element, std::initializer_list<const char*> types) {
  return element.vr == std::array<char, 2>{} || element.has_vr("UN") ||
         std::ranges::any_of(types, [&](const char* vr) { return element.has_vr(vr); });
}

std::vector<CopiedElement> copies_of(std::span<const CopiedRow> rows, const DicomDataset& data) {
  std::vector<CopiedElement> copied;
  for (const CopiedRow& row : rows) {
    const DicomElement* element = data.find(row.tag);
    if (element == nullptr || element->value.empty() || element->value.size() > kLongestText)
      continue;
    if (!may_have_vr(*element, {row.vr})) continue;
    copied.push_back(
        {row.tag.group, row.tag.element, {row.vr[0], row.vr[1]}, std::string(element->value)});
    if (copied.back().value.size() % 2 != 0) copied.back().value += ' ';
  }
  return copied;
}

void put_least(DicomWriter& out, std::span<const CopiedRow> rows) {
  for (const CopiedRow& row : rows) {
    if (row.least == nullptr || out.has(row.tag.number())) continue;
    out.text(row.tag.number(), row.vr, row.least);
  }
}

std::vector<CopiedElement> equipment_elements(const DicomDataset& data) {
  return copies_of(kEquipment, data);
}

void put_source_equipment(DicomWriter& out, const std::vector<CopiedElement>& equipment) {
  DicomWriter device;
  device.copies(equipment);
  if (!device.has(0x0008'0070)) return;
  device.sequence(0x0040'a170, {code_item({"DCM", "109101", "Acquisition Equipment"})});
  out.sequence(0x0018'a001, {device});
}

int series_number_of(const DicomDataset& data) {
  const std::string text = text_of(data, {0x0020, 0x0011, "SeriesNumber"});
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int series_after(int source) {
  return source > 0 && source < std::numeric_limits<int>::max() ? source + 1 : 1;
}

std::optional<DicomSeries> describe_series(const ImageFile& image) {
  const auto* dicom = dynamic_cast<const DicomImage*>(&image);
  if (dicom == nullptr) return std::nullopt;
  const DicomObject& first = dicom->objects().front();
  DicomSeries series{first.path, first.series_uid, first.identity};
  for (const DicomObject& object : dicom->objects()) {
    series.instances.push_back({object.class_uid, object.instance_uid, object.frames > 1});
  }
  const auto has_no_place = [](const DicomPlane& plane) {
    return !plane.has_position || !plane.has_orientation;
  };
  if (first.is_segmentation() || std::ranges::any_of(dicom->planes(), has_no_place)) return series;
  for (const DicomPlane& plane : dicom->planes()) {
    series.slices.push_back({static_cast<size_t>(plane.object), plane.frame, plane.position_mm});
  }
  return series;
}

}  // namespace larch::io
