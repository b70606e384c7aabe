// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/xa_header.h"

#include <array>
#include <cmath>
#include <span>

#include "larch/core/error.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/xa/angiogram_dicom.h"

namespace larch {
namespace io {
namespace {

/// Of frames whose times nobody knows.
constexpr double kUnknownRateHz = 15;

/// Beside patient and study, which all derived files share.
constexpr CopiedRow kCopied[] = {
    {{0x0008, 0x0022, "AcquisitionDate"}, "DA"},
    {{0x0008, 0x0032, "AcquisitionTime"}, "TM"},
    {{0x0008, 0x0080, "InstitutionName"}, "LO"},
    {{0x0018, 0x0010, "ContrastBolusAgent"}, "LO", ""},
    {{0x0018, 0x0022, "ScanOptions"}, "CS"},
    {{0x0018, 0x0060, "KVP"}, "DS", ""},
    {{0x0018, 0x1110, "DistanceSourceToDetector"}, "DS"},
    {{0x0018, 0x1111, "DistanceSourceToPatient"}, "DS"},
    {{0x0018, 0x1114, "EstimatedRadiographicMagnificationFactor"}, "DS"},
    {{0x0018, 0x1134, "TableMotion"}, "CS"},
    {{0x0018, 0x1147, "FieldOfViewShape"}, "CS"},
    {{0x0018, 0x1149, "FieldOfViewDimensions"}, "IS"},
    {{0x0018, 0x1150, "ExposureTime"}, "IS"},
    {{0x0018, 0x1151, "XRayTubeCurrent"}, "IS"},
    {{0x0018, 0x1152, "Exposure"}, "IS", ""},
    {{0x0018, 0x1154, "AveragePulseWidth"}, "DS"},
    {{0x0018, 0x1155, "RadiationSetting"}, "CS", "GR"},  // of a graphic acquisition
    {{0x0018, 0x115a, "RadiationMode"}, "CS"},
    {{0x0018, 0x1160, "FilterType"}, "SH"},
    {{0x0018, 0x1162, "IntensifierSize"}, "DS"},
    {{0x0018, 0x1164, "ImagerPixelSpacing"}, "DS"},
    {{0x0018, 0x1166, "Grid"}, "CS"},
    {{0x0018, 0x1190, "FocalSpots"}, "DS"},
    {{0x0018, 0x1500, "PositionerMotion"}, "CS", ""},
    {{0x0018, 0x1508, "PositionerType"}, "CS"},
    {{0x0018, 0x1510, "PositionerPrimaryAngle"}, "DS", ""},
    {{0x0018, 0x1511, "PositionerSecondaryAngle"}, "DS", ""},
    {{0x0018, 0x1700, "CollimatorShape"}, "CS"},
    {{0x0018, 0x1702, "CollimatorLeftVerticalEdge"}, "IS"},
    {{0x0018, 0x1704, "CollimatorRightVerticalEdge"}, "IS"},
    {{0x0018, 0x1706, "CollimatorUpperHorizontalEdge"}, "IS"},
    {{0x0018, 0x1708, "CollimatorLowerHorizontalEdge"}, "IS"},
    {{0x0018, 0x1710, "CenterOfCircularCollimator"}, "IS"},
    {{0x0018, 0x1712, "RadiusOfCircularCollimator"}, "IS"},
    {{0x0018, 0x1720, "VerticesOfThePolygonalCollimator"}, "IS"},
    {{0x0020, 0x0020, "PatientOrientation"}, "CS", ""},
    {{0x0028, 0x0030, "PixelSpacing"}, "DS"},
    {{0x0028, 0x0034, "PixelAspectRatio"}, "IS"},
    {{0x0028, 0x0301, "BurnedInAnnotation"}, "CS"},
    {{0x0028, 0x0a02, "PixelSpacingCalibrationType"}, "CS"},
    {{0x0028, 0x0a04, "PixelSpacingCalibrationDescription"}, "LO"},
};

/// Returns the third value of ImageType: which plane of the device (PS3.3, C.8.7.1.1.1). One of two
/// has to name the other one.
std::string put_source(DicomWriter& out, const XaHeader& header) {
  std::string plane = "SINGLE PLANE";
  if (!header.other_plane_class_uid.empty() && !header.other_plane_instance_uid.empty()) {
    for (const char* one : {"BIPLANE B", "BIPLANE A"}) {
      if (header.image_type.find(one) != std::string::npos) plane = one;
    }
  }
  if (plane != "SINGLE PLANE") {
    out.sequence(0x0008'1140,
                 {reference_item(header.other_plane_class_uid, header.other_plane_instance_uid)});
  }
  if (!header.sop_instance_uid.empty() && !header.sop_class_uid.empty()) {
    out.sequence(0x0008'2112, {source_item(header.sop_class_uid, header.sop_instance_uid)});
  }
  return plane;
}

void put_identity(DicomWriter& out, const XaHeader& header) {
  out.copies(header.copied);
  if (!out.has(0x0010'0010)) out.text(0x0010'0010, "PN", header.patient_name);
  if (!out.has(0x0010'0020)) out.text(0x0010'0020, "LO", header.patient_id);
  const std::string kind = header.is_derived ? "DERIVED\\SECONDARY\\" : "ORIGINAL\\PRIMARY\\";
  const std::string study =
      header.study_uid.empty() ? dicom_uid(header.identity + " study") : header.study_uid;
  out.text(0x0008'0008, "CS", kind + put_source(out, header));
  out.text(0x0008'0016, "UI", "1.2.840.10008.5.1.4.1.1.12.1");  // XA image storage
  out.text(0x0008'0018, "UI", dicom_uid(header.identity + " instance"));
  out.text(0x0008'0060, "CS", "XA");
  out.text(0x0008'0070, "LO", "Larch");
  if (!header.software.empty()) out.text(0x0018'1020, "LO", header.software);
  out.text(0x0008'103e, "LO", shortened(header.series_description, 64));
  if (!header.derivation.empty()) {
    out.text(0x0008'2111, "ST", shortened(header.derivation, 1024));
  }
  out.text(0x0020'000d, "UI", study);
  out.text(0x0020'000e, "UI", dicom_uid(header.identity + " series"));
  out.text(0x0020'0011, "IS", std::to_string(std::max(1, header.series_number)));
  out.text(0x0020'0013, "IS", "1");  // InstanceNumber
  put_source_equipment(out, header.equipment);
  put_least(out, kStudyRows);
  put_least(out, kCopied);
  // Files that were acquired have it, empty if it is not known; derived ones may leave it out.
  if (!header.is_derived && !out.has(0x0020'0060)) out.text(0x0020'0060, "CS", "");
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

void put_times(DicomWriter& out, const std::string& path, int64_t frames,
               const std::vector<double>& times_ms, double display_rate_hz) {
  const auto put_timing = [&](uint32_t tag, const std::string& text) {
    // FrameIncrementPointer names the element that holds the times.
    out.numbers(0x0028'0009, "AT",
                std::array{static_cast<uint16_t>(tag >> 16), static_cast<uint16_t>(tag & 0xffff)});
    out.text(tag, "DS", text);
  };
  if (times_ms.empty()) {  // the standard wants one all the same
    put_timing(0x0018'1063,
               decimal(1000 / (display_rate_hz > 0 ? display_rate_hz : kUnknownRateHz)));
    out.text(0x0020'4000, "LT", "The times of the frames are not known; FrameTime is nominal");
    return;
  }
  if (const double step = even_step(times_ms); step > 0) {
    return put_timing(0x0018'1063, decimal(step));
  }
  std::string text;
  for (size_t i = 0; i < times_ms.size(); ++i) {
    text += i > 0 ? "\\" + decimal(times_ms[i] - times_ms[i - 1]) : "0";
  }
  put_timing(0x0018'1065, text);
  if (text.size() <= kLongestText) return;
  throw UsageError("cannot write '" + path + "': DICOM has no room for the times of " +
                   std::to_string(frames) +
                   " frames at uneven distances; write .mha, .nrrd or .nii.gz, or fewer frames");
}

DicomWriter mask_item(const MaskItem& mask) {
  DicomWriter item;
  item.text(0x0028'6101, "CS", kMaskOperations[static_cast<size_t>(mask.operation)]);
  if (mask.operation == MaskOperation::kNone) return item;
  std::vector<uint16_t> numbers;
  for (const FrameSpan& span : mask.ranges) {
    numbers.push_back(static_cast<uint16_t>(span.first + 1));
    numbers.push_back(static_cast<uint16_t>(span.last + 1));
  }
  if (!numbers.empty()) item.numbers(0x0028'6102, "US", numbers);
  if (mask.operation == MaskOperation::kAverage) {
    numbers.clear();
    for (const int frame : mask.mask_frames) numbers.push_back(static_cast<uint16_t>(frame + 1));
    item.numbers(0x0028'6110, "US", numbers);
    item.number(0x0028'6112, static_cast<uint16_t>(mask.contrast_averaging));
  } else {
    item.numbers(0x0028'6120, "SS", std::array{static_cast<uint16_t>(mask.tid_offset)});
  }
  if (mask.shift_px.x != 0 || mask.shift_px.y != 0) {
    // The row first; columns count to the left (PS3.3, C.7.6.10.1.2).
    const std::array shift{static_cast<float>(mask.shift_px.y),
                           static_cast<float>(-mask.shift_px.x)};
    item.bytes(0x0028'6114, "FL", {reinterpret_cast<const char*>(shift.data()), sizeof shift});
  }
  if (!mask.explanation.empty()) item.text(0x0028'6190, "ST", mask.explanation);
  return item;
}

/// In texts of a fixed length, so that a header with its window has the size of one without.
void put_window(DicomWriter& out, const std::optional<XaWindow>& window) {
  std::string centre = window ? decimal(window->centre) : "";
  std::string width = window ? decimal(window->width) : "";
  for (std::string* text : {&centre, &width}) text->resize(kLongestDecimal, ' ');
  out.text(0x0028'1050, "DS", centre);
  out.text(0x0028'1051, "DS", width);
}

void put_picture(DicomWriter& out, const Grid& grid, int64_t frames, const XaHeader& header,
                 int zero) {
  out.pixels(grid.size, 16, header.bits, /*has_sign=*/false);
  if (header.is_monochrome1) out.text(0x0028'0004, "CS", "MONOCHROME1");
  out.text(0x0028'0008, "IS", std::to_string(frames));
  const bool is_known = header.intensity != PixelIntensity::kUnknown;
  out.text(0x0028'1040, "CS",
           is_known ? kPixelIntensities[static_cast<size_t>(header.intensity)] : "DISP");
  if (header.intensity_sign != 0) {
    out.numbers(0x0028'1041, "SS", std::array{static_cast<uint16_t>(header.intensity_sign)});
  }
  put_window(out, header.window);
  // Of logarithms the standard wants a rescaling; of differences it tells the 0.
  const PixelRescaling rescaling =
      header.rescaling.value_or(PixelRescaling{1, static_cast<double>(-zero)});
  if (rescaling != PixelRescaling{} || header.intensity == PixelIntensity::kLog) {
    out.text(0x0028'1052, "DS", decimal(rescaling.intercept));
    out.text(0x0028'1053, "DS", decimal(rescaling.slope));
    out.text(0x0028'1054, "LO", "US");  // of no unit
  }
  out.text(0x0028'2110, "CS", header.is_lossy ? "01" : "00");
  if (header.display_rate_hz > 0) {
    out.text(0x0008'2144, "IS", std::to_string(std::lround(header.display_rate_hz)));
  }
  // Of a file that has none a spacing of 1 is no spacing.
  const bool known = grid.spacing_mm.x != 1 || grid.spacing_mm.y != 1;
  if (known && !out.has(0x0028'0030) && !out.has(0x0018'1164)) {
    out.text(0x0018'1164, "DS", decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
  }
  if (header.masks.empty()) return;
  std::vector<DicomWriter> items;
  for (const MaskItem& mask : header.masks) items.push_back(mask_item(mask));
  out.sequence(0x0028'6100, items);
  out.text(0x0028'1090, "CS", "SUB");
}

}  // namespace

std::vector<CopiedElement> copied_elements(const DicomDataset& data) {
  std::vector<CopiedElement> copied = copies_of(kStudyRows, data);
  for (CopiedElement& element : copies_of(kCopied, data)) copied.push_back(std::move(element));
  return copied;
}

void require_xa_holds(const std::string& path, const Grid& grid, int64_t frames) {
  constexpr int64_t kMaximumSide = 65535, kMaximumBytes = 0xfffffffe;
  if (grid.size.x > kMaximumSide || grid.size.y > kMaximumSide) {
    throw UsageError("cannot write '" + path +
                     "': DICOM holds at most 65535 rows and columns; write .mha or .nrrd");
  }
  if (frames > kMaximumBytes / 2 / (int64_t{grid.size.x} * grid.size.y)) {
    throw UsageError("cannot write '" + path + "': DICOM holds at most 4 GiB of pixels, and " +
                     std::to_string(frames) +
                     " frames take more; write .mha, .nrrd or .nii.gz, or fewer frames");
  }
}

std::string xa_header_bytes(const std::string& path, const Grid& grid, int64_t frames,
                            const std::vector<double>& times_ms, const XaHeader& header, int zero) {
  require_xa_holds(path, grid, frames);
  DicomWriter out;
  put_identity(out, header);
  put_times(out, path, frames, times_ms, header.display_rate_hz);
  put_picture(out, grid, frames, header, zero);
  const int64_t length = 2 * frames * grid.size.x * grid.size.y;
  return out.file() + dicom_element_head(0x7fe0'0010, "OW", static_cast<uint32_t>(length));
}

}  // namespace io

XaHeader derived_xa_header(const Angiogram& source, const std::string& identity,
                           const std::string& derivation, bool is_log) {
  XaHeader header{source};
  header.is_derived = true;
  header.intensity = is_log ? PixelIntensity::kLog : PixelIntensity::kLinear;
  header.series_description =
      "Subtracted" + (source.series_description.empty() ? "" : ": " + source.series_description);
  header.derivation = derivation;
  header.identity = identity;
  header.series_number = io::series_after(source.series_number);
  return header;
}

}  // namespace larch
