// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/xa_bytes.h"

#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include <gdcmWriter.h>

#include "larch/core/error.h"
#include "larch/io/dicom/dicom_put.h"
#include "larch/io/dicom/dicom_write.h"

namespace larch::io {
namespace {

using gdcm::VR;

constexpr const char* kXaStorage = "1.2.840.10008.5.1.4.1.1.12.1";
constexpr size_t kLongestText = 65534;
/// Of frames whose times nobody knows.
constexpr double kUnknownRateHz = 15;

/// At most `bytes` of a text, not ending in the middle of a character of UTF-8.
std::string shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

gdcm::DataSet code(const char* value, const char* scheme, const char* meaning) {
  gdcm::DataSet item;
  DicomPut put(item);
  put.text(0x0008, 0x0100, VR::SH, value);
  put.text(0x0008, 0x0102, VR::SH, scheme);
  put.text(0x0008, 0x0104, VR::LO, meaning);
  return item;
}

gdcm::DataSet reference(const std::string& class_uid, const std::string& instance_uid) {
  gdcm::DataSet item;
  DicomPut put(item);
  put.text(0x0008, 0x1150, VR::UI, class_uid);
  put.text(0x0008, 0x1155, VR::UI, instance_uid);
  return item;
}

void put_source(DicomPut& put, const XaHeader& header) {
  if (header.plane != "SINGLE PLANE") {
    put.sequence(0x0008, 0x1140,
                 {reference(header.other_plane_class_uid, header.other_plane_instance_uid)});
  }
  if (header.source_instance_uid.empty() || header.source_class_uid.empty()) return;
  gdcm::DataSet item = reference(header.source_class_uid, header.source_instance_uid);
  DicomPut(item).sequence(0x0040, 0xa170,  // PurposeOfReferenceCodeSequence
                          {code("121322", "DCM", "Source image for image processing operation")});
  put.sequence(0x0008, 0x2112, {item});
}

/// What every file has to have, empty where it is not known (type 2 of PS3.3).
void put_required(DicomPut& put) {
  struct Row {
    uint16_t group, element;
    VR::VRType type;
    const char* value = "";
  };
  constexpr Row kRows[] = {
      {0x0008, 0x0020, VR::DA},        // StudyDate
      {0x0008, 0x0030, VR::TM},        // StudyTime
      {0x0008, 0x0050, VR::SH},        // AccessionNumber
      {0x0008, 0x0090, VR::PN},        // ReferringPhysicianName
      {0x0010, 0x0010, VR::PN},        // PatientName
      {0x0010, 0x0020, VR::LO},        // PatientID
      {0x0010, 0x0030, VR::DA},        // PatientBirthDate
      {0x0010, 0x0040, VR::CS},        // PatientSex
      {0x0018, 0x0010, VR::LO},        // ContrastBolusAgent
      {0x0018, 0x0060, VR::DS},        // KVP
      {0x0018, 0x1152, VR::IS},        // Exposure
      {0x0018, 0x1155, VR::CS, "GR"},  // RadiationSetting: of a graphic acquisition
      {0x0018, 0x1500, VR::CS},        // PositionerMotion
      {0x0018, 0x1510, VR::DS},        // PositionerPrimaryAngle
      {0x0018, 0x1511, VR::DS},        // PositionerSecondaryAngle
      {0x0020, 0x0010, VR::SH},        // StudyID
      {0x0020, 0x0020, VR::CS},        // PatientOrientation
  };
  for (const Row& row : kRows) {
    if (!put.has(row.group, row.element)) put.text(row.group, row.element, row.type, row.value);
  }
}

void put_copied(DicomPut& put, const std::vector<CopiedElement>& elements) {
  for (const CopiedElement& element : elements) {
    put.bytes(element.group, element.element,
              gdcm::VR::GetVRTypeFromFile(std::array{element.vr[0], element.vr[1], '\0'}.data()),
              element.value);
  }
}

/// The device that made the source, if its manufacturer is known, without which there is no item.
void put_source_equipment(DicomPut& put, const XaHeader& header) {
  gdcm::DataSet item;
  DicomPut device(item);
  put_copied(device, header.source_equipment);
  if (!device.has(0x0008, 0x0070)) return;
  device.sequence(0x0040, 0xa170, {code("109101", "DCM", "Acquisition Equipment")});
  put.sequence(0x0018, 0xa001, {item});
}

void put_identity(DicomPut& put, const XaHeader& header) {
  put_copied(put, header.copied);
  if (!put.has(0x0010, 0x0010)) put.text(0x0010, 0x0010, VR::PN, header.patient_name);
  if (!put.has(0x0010, 0x0020)) put.text(0x0010, 0x0020, VR::LO, header.patient_id);
  const std::string kind = header.is_derived ? "DERIVED\\SECONDARY\\" : "ORIGINAL\\PRIMARY\\";
  const std::string study =
      header.study_uid.empty() ? dicom_uid(header.identity + " study") : header.study_uid;
  put.text(0x0008, 0x0008, VR::CS, kind + header.plane);
  put.text(0x0008, 0x0016, VR::UI, kXaStorage);
  put.text(0x0008, 0x0018, VR::UI, dicom_uid(header.identity + " instance"));
  put.text(0x0008, 0x0060, VR::CS, "XA");
  put.text(0x0008, 0x0070, VR::LO, "Larch");
  put.text(0x0008, 0x103e, VR::LO, shortened(header.series_description, 64));
  if (!header.derivation.empty()) {
    put.text(0x0008, 0x2111, VR::ST, shortened(header.derivation, 1024));
  }
  put.text(0x0020, 0x000d, VR::UI, study);
  put.text(0x0020, 0x000e, VR::UI, dicom_uid(header.identity + " series"));
  put.text(0x0020, 0x0011, VR::IS, std::to_string(header.series_number));
  put.text(0x0020, 0x0013, VR::IS, "1");  // InstanceNumber
  put_source(put, header);
  put_source_equipment(put, header);
  put_required(put);
  // Files that were acquired have it, empty if it is not known; derived ones may leave it out.
  if (!header.is_derived && !put.has(0x0020, 0x0060)) put.text(0x0020, 0x0060, VR::CS, "");
}

/// The step between frames if it is the same for all, to what a decimal string holds; else 0.
double even_step(const std::vector<double>& times_ms) {
  if (times_ms.size() < 2) return 0;
  const double step = times_ms[1] - times_ms[0];
  constexpr double kSame = 1e-6;
  for (size_t i = 1; i < times_ms.size(); ++i) {
    if (std::abs(times_ms[i] - times_ms[i - 1] - step) > kSame * std::max(1.0, step)) return 0;
  }
  return step;
}

void put_times(DicomPut& put, const std::string& path, int64_t frames,
               const std::vector<double>& times_ms, double display_rate_hz) {
  const auto points_to = [&](uint16_t group, uint16_t element) {
    put.numbers(0x0028, 0x0009, VR::AT, std::array{group, element});
  };
  if (times_ms.empty()) {  // the standard wants one all the same
    const double rate = display_rate_hz > 0 ? display_rate_hz : kUnknownRateHz;
    points_to(0x0018, 0x1063);
    put.text(0x0018, 0x1063, VR::DS, decimal(1000 / rate));
    put.text(0x0020, 0x4000, VR::LT, "The times of the frames are not known; FrameTime is nominal");
    return;
  }
  if (const double step = even_step(times_ms); step > 0) {
    points_to(0x0018, 0x1063);
    put.text(0x0018, 0x1063, VR::DS, decimal(step));
    return;
  }
  std::string text;
  for (size_t i = 0; i < times_ms.size(); ++i) {
    text += i > 0 ? "\\" + decimal(times_ms[i] - times_ms[i - 1]) : "0";
  }
  points_to(0x0018, 0x1065);
  put.text(0x0018, 0x1065, VR::DS, text);
  if (text.size() <= kLongestText) return;
  throw UsageError("cannot write '" + path + "': DICOM has no room for the times of " +
                   std::to_string(frames) +
                   " frames at uneven distances; write .mha, .nrrd or .nii.gz, or fewer frames");
}

gdcm::DataSet mask_item(const MaskItem& mask) {
  gdcm::DataSet item;
  DicomPut put(item);
  constexpr const char* kWords[] = {"NONE", "AVG_SUB", "TID", "REV_TID"};
  put.text(0x0028, 0x6101, VR::CS, kWords[static_cast<int>(mask.operation)]);
  if (mask.operation == MaskOperation::kNone) return item;
  std::vector<uint16_t> numbers;
  for (const FrameSpan& span : mask.ranges) {
    numbers.push_back(static_cast<uint16_t>(span.first + 1));
    numbers.push_back(static_cast<uint16_t>(span.last + 1));
  }
  if (!numbers.empty()) put.numbers(0x0028, 0x6102, VR::US, numbers);
  if (mask.operation == MaskOperation::kAverage) {
    numbers.clear();
    for (const int frame : mask.mask_frames) numbers.push_back(static_cast<uint16_t>(frame + 1));
    put.numbers(0x0028, 0x6110, VR::US, numbers);
    put.number(0x0028, 0x6112, static_cast<uint16_t>(mask.contrast_averaging));
  } else {
    put.numbers(0x0028, 0x6120, VR::SS, std::array{static_cast<uint16_t>(mask.tid_offset)});
  }
  if (mask.shift_px.x != 0 || mask.shift_px.y != 0) {
    // The row first; columns count to the left (PS3.3, C.7.6.10.1.2).
    const std::array shift{static_cast<float>(mask.shift_px.y),
                           static_cast<float>(-mask.shift_px.x)};
    put.bytes(0x0028, 0x6114, VR::FL, {reinterpret_cast<const char*>(shift.data()), sizeof shift});
  }
  if (!mask.explanation.empty()) put.text(0x0028, 0x6190, VR::ST, mask.explanation);
  return item;
}

void put_picture(DicomPut& put, const Grid& grid, int64_t frames, const XaHeader& header,
                 int zero) {
  constexpr const char* kIntensity[] = {"DISP", "LIN", "LOG", "DISP"};
  put.number(0x0028, 0x0002, 1);  // SamplesPerPixel
  put.text(0x0028, 0x0004, VR::CS, header.is_monochrome1 ? "MONOCHROME1" : "MONOCHROME2");
  put.text(0x0028, 0x0008, VR::IS, std::to_string(frames));
  put.number(0x0028, 0x0010, static_cast<uint16_t>(grid.size.y));
  put.number(0x0028, 0x0011, static_cast<uint16_t>(grid.size.x));
  put.number(0x0028, 0x0100, 16);
  put.number(0x0028, 0x0101, static_cast<uint16_t>(header.bits));
  put.number(0x0028, 0x0102, static_cast<uint16_t>(header.bits - 1));
  put.number(0x0028, 0x0103, 0);
  put.text(0x0028, 0x1040, VR::CS, kIntensity[static_cast<int>(header.intensity)]);
  if (header.intensity_sign != 0) {
    put.numbers(0x0028, 0x1041, VR::SS, std::array{static_cast<uint16_t>(header.intensity_sign)});
  }
  put.text(0x0028, 0x1050, VR::DS, std::string(kWindowBytes, ' '));
  put.text(0x0028, 0x1051, VR::DS, std::string(kWindowBytes, ' '));
  // Of logarithms the standard wants a rescaling; of differences it tells the 0.
  const PixelRescaling rescaling =
      header.rescaling.value_or(PixelRescaling{1, static_cast<double>(-zero)});
  if (rescaling != PixelRescaling{} || header.intensity == PixelIntensity::kLog) {
    put.text(0x0028, 0x1052, VR::DS, decimal(rescaling.intercept));
    put.text(0x0028, 0x1053, VR::DS, decimal(rescaling.slope));
    put.text(0x0028, 0x1054, VR::LO, "US");  // of no unit
  }
  put.text(0x0028, 0x2110, VR::CS, header.is_lossy ? "01" : "00");
  if (header.display_rate_hz > 0) {
    put.text(0x0008, 0x2144, VR::IS, std::to_string(std::lround(header.display_rate_hz)));
  }
  // Of a file that has none a spacing of 1 is no spacing.
  const bool known = grid.spacing_mm.x != 1 || grid.spacing_mm.y != 1;
  if (known && !put.has(0x0028, 0x0030) && !put.has(0x0018, 0x1164)) {
    put.text(0x0018, 0x1164, VR::DS, decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
  }
  if (header.masks.empty()) return;
  std::vector<gdcm::DataSet> items;
  for (const MaskItem& mask : header.masks) items.push_back(mask_item(mask));
  put.sequence(0x0028, 0x6100, items);
  put.text(0x0028, 0x1090, VR::CS, "SUB");
}

/// Where the value of an element of the window begins, which are the last of their tags.
size_t window_at(const std::string& bytes, uint16_t element) {
  const char head[] = {0x28, 0x00, static_cast<char>(element & 0xff), 0x10,
                       'D',  'S',  static_cast<char>(kWindowBytes),   0};
  const size_t at = bytes.rfind(std::string(head, sizeof head) + std::string(kWindowBytes, ' '));
  if (at == std::string::npos) throw std::logic_error("a DICOM header without its window");
  return at + sizeof head;
}

}  // namespace

void require_xa_holds(const std::string& path, const Grid& grid, int64_t frames) {
  constexpr int64_t kMostSide = 65535, kMostBytes = 0xfffffffe;
  if (grid.size.x > kMostSide || grid.size.y > kMostSide) {
    throw UsageError("cannot write '" + path +
                     "': DICOM holds at most 65535 rows and columns; write .mha or .nrrd");
  }
  if (frames > kMostBytes / 2 / (int64_t{grid.size.x} * grid.size.y)) {
    throw UsageError("cannot write '" + path + "': DICOM holds at most 4 GiB of pixels, and " +
                     std::to_string(frames) +
                     " frames take more; write .mha, .nrrd or .nii.gz, or fewer frames");
  }
}

std::string window_text(double value) {
  std::string text = decimal(value);
  text.resize(kWindowBytes, ' ');
  return text;
}

XaBytes xa_bytes(const std::string& path, const Grid& grid, int64_t frames,
                 const std::vector<double>& times_ms, const XaHeader& header, int zero) {
  require_xa_holds(path, grid, frames);
  gdcm::Writer writer;
  DicomPut put(writer.GetFile().GetDataSet());
  put_identity(put, header);
  put_times(put, path, frames, times_ms, header.display_rate_hz);
  put_picture(put, grid, frames, header, zero);
  writer.GetFile().GetHeader().SetDataSetTransferSyntax(
      gdcm::TransferSyntax::ExplicitVRLittleEndian);
  std::ostringstream stream;
  writer.SetStream(stream);
  if (!writer.Write()) throw OutputError("cannot write '" + path + "' as DICOM");
  XaBytes out{stream.str()};
  out.centre_at = window_at(out.bytes, 0x1050);
  out.width_at = window_at(out.bytes, 0x1051);
  const auto length = static_cast<uint32_t>(2 * frames * grid.size.x * grid.size.y);
  out.bytes += std::string("\xe0\x7f\x10\x00OW\0\0", 8);
  for (int i = 0; i < 4; ++i) out.bytes += static_cast<char>(length >> (8 * i) & 0xffU);
  return out;
}

}  // namespace larch::io
