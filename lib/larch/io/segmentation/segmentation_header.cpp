// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/segmentation/segmentation_header.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace larch::io {
namespace {

const Code kTissue{"SCT", "85756007", "Tissue"}, kOrgan{"SCT", "91772007", "Organ"};
constexpr size_t kLongestName = 64;  ///< of the type LO

/// Beside patient and study. ContentDate and ContentTime are those of the source, so that the same
/// labels give the same bytes.
constexpr CopiedRow kSourceRows[] = {
    {{0x0008, 0x0023, "ContentDate"}, "DA", "19000101"},
    {{0x0008, 0x0033, "ContentTime"}, "TM", "000000"},
    {{0x0020, 0x1040, "PositionReferenceIndicator"}, "LO", ""},
    {{0x0028, 0x2110, "LossyImageCompression"}, "CS", "00"},
};

/// Returns a name as an element of the type LO holds it. `is_utf8`: so the file says of its texts;
/// other sets of characters have no place for what is beyond ASCII.
std::string name_text(const std::string& name, bool is_utf8) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127 || c == '\\') {
      text += ' ';
    } else if (byte < 128 || is_utf8) {
      text += c;
    } else if (byte >= 0xc0) {
      text += '?';  // the first byte of a character
    }
  }
  return shortened(text, kLongestName);
}

/// Returns a colour of sRGB as PS3.3, C.10.7.1.1 has it: CIELab of the white of sRGB, D65, which
/// viewers and libraries take too.
std::array<uint16_t, 3> cielab(const uint8_t (&rgb)[3]) {
  // From linear sRGB to X, Y and Z as parts of those of white.
  constexpr double kParts[3][3] = {{0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505},
                                   {0.2126, 0.7152, 0.0722},
                                   {0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089}};
  double f[3];
  for (int k = 0; k < 3; ++k) {
    double part = 0;
    for (int i = 0; i < 3; ++i) {
      const double c = rgb[i] / 255.0;
      part += kParts[k][i] * (c > 0.04045 ? std::pow((c + 0.055) / 1.055, 2.4) : c / 12.92);
    }
    f[k] = part > 0.008856 ? std::cbrt(part) : 7.787 * part + 16.0 / 116;
  }
  const auto scaled = [](double part) {
    return static_cast<uint16_t>(std::lround(std::clamp(part, 0.0, 1.0) * 65535));
  };
  return {scaled((116 * f[1] - 16) / 100), scaled((500 * (f[0] - f[1]) + 128) / 255),
          scaled((200 * (f[1] - f[2]) + 128) / 255)};
}

void put_tag(DicomWriter& out, uint32_t tag, uint32_t value) {
  out.numbers(tag, "AT",
              std::array{static_cast<uint16_t>(value >> 16), static_cast<uint16_t>(value)});
}

DicomWriter segment_item(const LabelEntry& entry, int number, const SegmentationMaker& maker,
                         bool is_utf8) {
  const auto code = [&](const Code& given, const Code& usual) {
    const Code& one = given.value.empty() ? usual : given;
    return std::vector{code_item({one.scheme, one.value, name_text(one.meaning, is_utf8)})};
  };
  DicomWriter algorithm;
  algorithm.sequence(0x0066'002f, {code_item(maker.family)});
  algorithm.text(0x0066'0031, "LO", maker.version);
  algorithm.text(0x0066'0036, "LO", "Larch " + maker.program);
  const std::string label = std::to_string(entry.value);
  DicomWriter item;
  item.sequence(0x0062'0003, code(entry.category, kTissue));
  item.number(0x0062'0004, static_cast<uint16_t>(number));
  item.text(0x0062'0005, "LO", name_text(entry.name.empty() ? label : entry.name, is_utf8));
  item.sequence(0x0062'0007, {algorithm});
  item.text(0x0062'0008, "CS", "AUTOMATIC");
  item.text(0x0062'0009, "LO", "Larch " + maker.program);
  item.numbers(0x0062'000d, "US", cielab(entry.rgb));
  item.sequence(0x0062'000f, code(entry.code, kOrgan));
  if (entry.value != number) {
    item.text(0x0063'0010, "LO", "LARCH");
    item.bytes(0x0063'1001, "SL", {reinterpret_cast<const char*>(&entry.value), 4});
  }
  return item;
}

DicomWriter frame_item(const SegmentationHeader& header, const SegmentFrame& frame) {
  const DicomSeries::Slice& slice = header.series.slices[static_cast<size_t>(frame.slice)];
  const DicomSeries::Instance& instance = header.series.instances[slice.instance];
  const std::array index{static_cast<uint32_t>(frame.segment + 1),
                         static_cast<uint32_t>(frame.slice + 1)};
  DicomWriter content, place, segment, derivation;
  content.bytes(0x0020'9157, "UL", {reinterpret_cast<const char*>(index.data()), sizeof index});
  // Where the header of a slice is a little off, as one that is rounded is, an even grid counts.
  constexpr double kOff = 0.01;
  Vec3d at = world_from_index(header.grid, {0, 0, static_cast<double>(frame.slice)});
  const bool is_even = norm(slice.position_mm - at) < kOff * header.grid.spacing_mm.z;
  if (is_even) at = slice.position_mm;
  place.text(0x0020'0032, "DS", decimals(std::array{at.x, at.y, at.z}));
  segment.number(0x0062'000b, static_cast<uint16_t>(frame.segment + 1));
  DicomWriter source = source_item(instance.class_uid, instance.instance_uid);
  if (instance.has_frames) source.text(0x0008'1160, "IS", std::to_string(slice.frame + 1));
  source.text(0x0028'135a, "CS", "YES");  // SpatialLocationsPreserved
  derivation.sequence(0x0008'2112, {source});
  derivation.sequence(0x0008'9215, {code_item({"DCM", "113076", "Segmentation"})});
  DicomWriter item;
  item.sequence(0x0008'9124, {derivation});
  item.sequence(0x0020'9111, {content});
  item.sequence(0x0020'9113, {place});
  item.sequence(0x0062'000a, {segment});
  return item;
}

/// The elements that number the frames: first by segment, then by position.
void put_dimensions(DicomWriter& out, const std::string& series_uid) {
  DicomWriter organization;
  organization.text(0x0020'9164, "UI", dicom_uid(series_uid + " dimensions"));
  std::vector<DicomWriter> indices;
  for (const auto& [pointer, group] :
       {std::pair(0x0062'000bU, 0x0062'000aU), std::pair(0x0020'0032U, 0x0020'9113U)}) {
    DicomWriter& index = indices.emplace_back(organization);
    put_tag(index, 0x0020'9165, pointer);
    put_tag(index, 0x0020'9167, group);
  }
  out.sequence(0x0020'9221, {organization});
  out.sequence(0x0020'9222, indices);
}

void put_frames(DicomWriter& out, const SegmentationHeader& header) {
  const Grid& grid = header.grid;
  const Vec3d row = grid.direction.column(0), column = grid.direction.column(1);
  // Between planes; of a tilted gantry the third axis is longer.
  const double step = grid.spacing_mm.z * dot(grid.direction.column(2), cross(row, column));
  DicomWriter axes, measures, shared;
  axes.text(0x0020'0037, "DS",
            decimals(std::array{row.x, row.y, row.z, column.x, column.y, column.z}));
  measures.text(0x0018'0050, "DS", decimal(step));
  measures.text(0x0018'0088, "DS", decimal(step));
  measures.text(0x0028'0030, "DS", decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
  shared.sequence(0x0020'9116, {axes});
  shared.sequence(0x0028'9110, {measures});
  out.sequence(0x5200'9229, {shared});
  std::vector<DicomWriter> items;
  for (const SegmentFrame& frame : header.frames) items.push_back(frame_item(header, frame));
  out.sequence(0x5200'9230, items);
  out.text(0x0028'0008, "IS", std::to_string(items.size()));
  put_dimensions(out, header.series.series_uid);
}

/// Patient, study and frame of reference of the source, a series after it. Tells whether names can
/// be UTF-8.
bool put_identity(DicomWriter& out, const DicomSeries& series) {
  const DicomFile file = read_dicom_file(series.path);
  const DicomDataset& source = file.data;
  out.copies(copies_of(kStudyRows, source));
  out.copies(copies_of(kSourceRows, source));
  const std::string characters = text_of(source, kStudyRows[0].tag);
  const bool is_utf8 = characters.empty() || characters == "ISO_IR 6" || characters == "ISO_IR 192";
  if (is_utf8) out.text(kStudyRows[0].tag.number(), "CS", "ISO_IR 192");
  put_least(out, kStudyRows);
  put_least(out, kSourceRows);
  put_source_equipment(out, equipment_elements(source));
  const std::string about = text_of(source, {0x0008, 0x103e, "SeriesDescription"});
  out.text(0x0008'103e, "LO",
           shortened("Segmentation" + (about.empty() ? "" : ": " + about), kLongestName));
  out.text(0x0020'0011, "IS", std::to_string(series_after(series_number_of(source))));
  const auto uid_or = [&](const std::string& uid, const char* what) {
    return uid.empty() ? dicom_uid(series.series_uid + what) : uid;
  };
  out.text(0x0020'000d, "UI", uid_or(series.identity.study_uid, " study"));
  out.text(0x0020'0052, "UI", uid_or(series.identity.reference_frame_uid, " frame"));
  return is_utf8;
}

/// Puts the elements that are the same in each file of Larch, and the program that made this one.
void put_maker(DicomWriter& out, const SegmentationMaker& maker) {
  out.text(0x0008'0008, "CS", "DERIVED\\PRIMARY");              // ImageType
  out.text(0x0008'0016, "UI", "1.2.840.10008.5.1.4.1.1.66.4");  // Segmentation Storage
  out.text(0x0008'0060, "CS", "SEG");
  out.text(0x0008'0070, "LO", "Larch");
  out.text(0x0008'1090, "LO", maker.program);   // ManufacturerModelName
  out.text(0x0018'1000, "LO", "none");          // DeviceSerialNumber, which must not be empty
  out.text(0x0018'1020, "LO", maker.version);   // SoftwareVersions
  out.text(0x0020'0013, "IS", "1");             // InstanceNumber
  out.text(0x0070'0080, "CS", "SEGMENTATION");  // ContentLabel
  out.text(0x0070'0081, "LO", "");              // ContentDescription
  out.text(0x0070'0084, "PN", "");              // ContentCreatorName
}

}  // namespace

std::string segmentation_head(const SegmentationHeader& header, int64_t bytes,
                              const std::string& content) {
  DicomWriter out;
  const bool is_utf8 = put_identity(out, header.series);
  put_maker(out, header.maker);
  std::vector<DicomWriter> segments, instances;
  for (const LabelEntry& entry : header.table) {
    const int number = static_cast<int>(segments.size()) + 1;
    segments.push_back(segment_item(entry, number, header.maker, is_utf8));
  }
  out.sequence(0x0062'0002, segments);
  for (const DicomSeries::Instance& one : header.series.instances) {
    instances.push_back(reference_item(one.class_uid, one.instance_uid));
  }
  DicomWriter series;
  series.sequence(0x0008'114a, instances);
  series.text(0x0020'000e, "UI", header.series.series_uid);
  out.sequence(0x0008'1115, {series});
  put_frames(out, header);
  out.pixels(header.grid.size, 1, 1, /*has_sign=*/false);
  out.text(0x0062'0001, "CS", "BINARY");
  out.text(0x0062'0013, "CS", "NO");  // SegmentsOverlap
  const std::string all = out.data_set() + content;
  out.text(0x0008'0018, "UI", dicom_uid(all + " instance"));
  out.text(0x0020'000e, "UI", dicom_uid(all + " series"));
  return out.file() + dicom_element_head(0x7fe0'0010, "OB", static_cast<uint32_t>(bytes));
}

}  // namespace larch::io
