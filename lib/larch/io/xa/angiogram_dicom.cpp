// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/angiogram_dicom.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "larch/core/error.h"
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_image.h"

namespace larch {
namespace io {
namespace {

constexpr DicomTag kIntensity{0x0028, 0x1040, "PixelIntensityRelationship"};
constexpr DicomTag kFrameTime{0x0018, 0x1063, "FrameTime"};
constexpr DicomTag kFrameTimeVector{0x0018, 0x1065, "FrameTimeVector"};
constexpr DicomTag kFrameIncrement{0x0028, 0x0009, "FrameIncrementPointer"};

/// Where a shape is said: the display shutter (C.7.6.11), or the collimator of the X-rays
/// (C.8.7.3), whose elements are the same one group further on.
struct ShapeTags {
  DicomTag shape, left, right, upper, lower, centre, radius, vertices;
};
constexpr ShapeTags kShutter{
    {0x0018, 0x1600, "ShutterShape"},
    {0x0018, 0x1602, "ShutterLeftVerticalEdge"},
    {0x0018, 0x1604, "ShutterRightVerticalEdge"},
    {0x0018, 0x1606, "ShutterUpperHorizontalEdge"},
    {0x0018, 0x1608, "ShutterLowerHorizontalEdge"},
    {0x0018, 0x1610, "CenterOfCircularShutter"},
    {0x0018, 0x1612, "RadiusOfCircularShutter"},
    {0x0018, 0x1620, "VerticesOfThePolygonalShutter"},
};
constexpr ShapeTags kCollimator{
    {0x0018, 0x1700, "CollimatorShape"},
    {0x0018, 0x1702, "CollimatorLeftVerticalEdge"},
    {0x0018, 0x1704, "CollimatorRightVerticalEdge"},
    {0x0018, 0x1706, "CollimatorUpperHorizontalEdge"},
    {0x0018, 0x1708, "CollimatorLowerHorizontalEdge"},
    {0x0018, 0x1710, "CenterOfCircularCollimator"},
    {0x0018, 0x1712, "RadiusOfCircularCollimator"},
    {0x0018, 0x1720, "VerticesOfThePolygonalCollimator"},
};

[[noreturn]] void missing(const DicomTag& tag, const std::string& path) {
  bad(path, std::string(tag.name) +
                " is missing, which its shape needs; repair the header or export the file "
                "again");
}

double one_number(const DicomDataset& data, const DicomTag& tag, const std::string& path) {
  const auto numbers = numbers_of(data, tag, 1, path);
  if (numbers.empty()) missing(tag, path);
  return std::clamp(numbers[0], -1e6, 1e6);
}

int edge(const DicomDataset& data, const DicomTag& tag, const std::string& path) {
  return static_cast<int>(one_number(data, tag, path)) - 1;
}

/// Rows and columns count from 1, the row first.
Shutter read_shutter(const DicomDataset& data, const ShapeTags& tags, const std::string& path) {
  Shutter out;
  const std::string shapes = text_of(data, tags.shape);
  if (shapes.find("RECTANGULAR") != std::string::npos) {
    out.has_rectangle = true;
    out.left = edge(data, tags.left, path);
    out.right = edge(data, tags.right, path);
    out.upper = edge(data, tags.upper, path);
    out.lower = edge(data, tags.lower, path);
  }
  if (shapes.find("CIRCULAR") != std::string::npos) {
    const auto centre = numbers_of(data, tags.centre, 2, path);
    if (centre.empty()) missing(tags.centre, path);
    out.has_circle = true;
    out.centre_y = centre[0] - 1;
    out.centre_x = centre[1] - 1;
    out.radius = one_number(data, tags.radius, path);
  }
  if (shapes.find("POLYGONAL") != std::string::npos) {
    const std::string text = text_of(data, tags.vertices);
    const auto count = static_cast<size_t>(std::count(text.begin(), text.end(), '\\')) + 1;
    const auto numbers = numbers_of(data, tags.vertices, count, path);
    if (numbers.size() % 2 != 0 || numbers.size() < 6) {
      bad(path, std::string(tags.vertices.name) + " is no polygon; repair the header");
    }
    for (size_t i = 0; i < numbers.size(); i += 2) {
      out.polygon.push_back({static_cast<int>(std::clamp(numbers[i + 1], -1e6, 1e6)) - 1,
                             static_cast<int>(std::clamp(numbers[i], -1e6, 1e6)) - 1});
    }
  }
  return out;
}

/// The display shutter, or else the collimator.
void take_shutter(const DicomDataset& data, Angiogram& about) {
  for (const ShapeTags& tags : {kShutter, kCollimator}) {
    try {
      about.shutter = read_shutter(data, tags, about.path);
    } catch (const InputError& error) {
      about.warnings.push_back(error.what() + std::string("; until then it is not looked at"));
    }
    if (about.shutter.is_given()) return;
  }
}

/// Returns what the file says, or else the functional group that all frames share.
const DicomDataset& with_intensity(const DicomDataset& data) {
  if (has_value(data, kIntensity)) return data;
  const auto shared = items_of(data, {0x5200, 0x9229, "SharedFunctionalGroupsSequence"});
  if (shared.empty()) return data;
  const auto properties =
      items_of(shared[0].data, {0x0028, 0x9443, "FramePixelDataPropertiesSequence"});
  return properties.empty() ? data : properties[0].data;
}

void take_intensity(const DicomDataset& file, Angiogram& about) {
  const DicomDataset& data = with_intensity(file);
  const std::string word = text_of(data, kIntensity);
  const auto known = std::ranges::find(kPixelIntensities, word);
  if (known != kPixelIntensities.end()) {
    about.intensity = static_cast<PixelIntensity>(known - kPixelIntensities.begin());
  } else {
    about.warnings.push_back("'" + about.path + "': PixelIntensityRelationship is " + shown(word) +
                             ", none of LIN, LOG and DISP: it is not known what the values mean");
  }
  const std::vector<uint16_t> sign =
      uint16s_of(data, {0x0028, 0x1041, "PixelIntensityRelationshipSign"});
  if (!sign.empty()) about.intensity_sign = static_cast<int16_t>(sign[0]) < 0 ? -1 : 1;
}

void take_pixels(const DicomObject& object, Angiogram& about) {
  const DicomPixelFormat& format = object.format;
  if (format.is_colour()) {
    bad(about.path,
        "its pixels are colours, and grey ones are needed here; export it as "
        "MONOCHROME2");
  }
  if (format.bits_allocated != 8 && format.bits_allocated != 16) {
    bad(about.path, "its pixels have " + std::to_string(format.bits_allocated) +
                        " bits, and 8 or 16 are needed here; export the file again");
  }
  about.bits = format.bits_stored;
  about.least_stored = format.representation == 1 ? -(1 << (about.bits - 1)) : 0;
  about.is_monochrome1 = format.photometric == "MONOCHROME1";
  const DicomPlane& plane = object.planes.front();
  const bool rescaled = plane.slope != 1 || plane.intercept != 0;
  if (object.lut.values.empty() && !rescaled) return;
  const auto count = size_t{1} << about.bits;
  about.modality.reserve(count);
  for (size_t pixel = 0; pixel < count; ++pixel) {
    const int64_t stored = static_cast<int64_t>(pixel) + about.least_stored;
    if (object.lut.values.empty()) {
      about.modality.push_back(
          static_cast<float>(static_cast<double>(stored) * plane.slope + plane.intercept));
      continue;
    }
    const auto last = static_cast<int64_t>(object.lut.values.size()) - 1;
    const int64_t entry = std::clamp<int64_t>(stored - object.lut.first, 0, last);
    about.modality.push_back(object.lut.values[static_cast<size_t>(entry)]);
  }
}

/// Padding at an end of the range is left out as saturated; what lies between is not known here.
void look_at_padding(const DicomDataset& data, Angiogram& about) {
  const std::vector<uint16_t> padding = uint16s_of(data, {0x0028, 0x0120, "PixelPaddingValue"});
  if (padding.empty()) return;
  const int32_t value = about.least_stored < 0 ? static_cast<int16_t>(padding[0]) : padding[0];
  const int32_t most = about.least_stored + (1 << about.bits) - 1;
  if (value <= about.least_stored || value >= most) return;
  about.warnings.push_back("'" + about.path + "': its PixelPaddingValue, " + std::to_string(value) +
                           ", is within the range of its pixels, which count all the same; leave "
                           "the padding out with a region of interest");
}

/// All frames of an enhanced file have one spacing and one rescaling, or it is none of ours.
void require_alike(const DicomObject& object) {
  const DicomPlane& first = object.planes.front();
  for (const DicomPlane& plane : object.planes) {
    if (plane.slope == first.slope && plane.intercept == first.intercept &&
        plane.spacing_x_mm == first.spacing_x_mm && plane.spacing_y_mm == first.spacing_y_mm) {
      continue;
    }
    bad(object.path, "'" + plane.name +
                         "' has another pixel spacing or rescaling than the first frame; "
                         "export its frames to files of their own");
  }
}

void take_grid(const DicomObject& object, Angiogram& about) {
  const DicomPlane& plane = object.planes.front();
  about.grid.size = {plane.size.x, plane.size.y, 1};
  about.has_spacing = plane.has_spacing;
  if (plane.has_spacing) about.grid.spacing_mm = {plane.spacing_x_mm, plane.spacing_y_mm, 1};
  if (!plane.has_spacing && plane.aspect_y != plane.aspect_x) {
    about.warnings.push_back(
        "'" + about.path +
        "': it has no pixel spacing and a PixelAspectRatio other than 1, which "
        "is not looked at: lengths are in pixels");
  }
  check_geometry(about.grid, about.path);
}

// Which of the two elements counts; null if the file has neither.
const DicomTag* times_tag(const DicomDataset& data) {
  const std::vector<uint16_t> pointer = uint16s_of(data, kFrameIncrement);
  for (const DicomTag* tag : {&kFrameTimeVector, &kFrameTime}) {
    const bool named =
        pointer.size() >= 2 && pointer[0] == tag->group && pointer[1] == tag->element;
    if (named && has_value(data, *tag)) return tag;
  }
  for (const DicomTag* tag : {&kFrameTimeVector, &kFrameTime}) {
    if (has_value(data, *tag)) return tag;
  }
  return nullptr;
}

// When each frame was taken, from the first one on; empty if the file does not say it of each.
std::vector<double> frame_times_ms(const DicomDataset& data, int frames, Angiogram& about) {
  const std::string& path = about.path;
  const DicomTag* tag = times_tag(data);
  if (tag == nullptr) return {};
  const bool one = tag == &kFrameTime;
  const auto given = one ? 1 : std::ranges::count(text_of(data, *tag), '\\') + 1;
  const auto steps = numbers_of(data, *tag, static_cast<size_t>(given), path);
  if (!one && given != frames) {
    about.warnings.push_back("'" + path + "': FrameTimeVector has " + std::to_string(given) +
                             " times for " + std::to_string(frames) +
                             " frames; when they were taken is not known");
    return {};
  }
  std::vector<double> times(static_cast<size_t>(frames), 0);
  for (size_t i = 1; i < times.size(); ++i) {
    const double step = steps[one ? 0 : i];  // the first of the vector is 0 (PS3.3, C.7.6.5.1.2)
    if (step < 0) bad(path, std::string(tag->name) + " is negative; repair the header");
    times[i] = times[i - 1] + step;
  }
  return times;
}

bool is_lossy(const DicomFile& file) {
  const TransferSyntax syntax = file.transfer_syntax;
  return text_of(file.data, {0x0028, 0x2110, "LossyImageCompression"}) == "01" ||
         syntax == TransferSyntax::kJpegBaseline || syntax == TransferSyntax::kJpegExtended ||
         syntax == TransferSyntax::kJpegLsNear;
}

}  // namespace

std::optional<Angiogram> describe_angiogram(const ImageFile& image) {
  const auto* dicom = dynamic_cast<const DicomImage*>(&image);
  if (dicom == nullptr) return std::nullopt;
  const DicomObject& object = dicom->object();
  const DicomDataset& data = dicom->file().data;
  if (!object.has_pixels) {
    bad(object.path, "it has no pixels, it is a DICOM " + object.kind + "; give an image");
  }
  if (!object.problem.empty()) throw InputError(object.problem);
  if (object.frames > 1 && !is_cine(object)) {
    bad(object.path,
        "its frames stand at places of their own, so that they are a volume and no sequence");
  }
  Angiogram about;
  about.path = object.path;
  about.is_dicom = true;
  about.frames = object.frames;
  take_pixels(object, about);
  look_at_padding(data, about);
  require_alike(object);
  take_grid(object, about);
  about.times_ms = frame_times_ms(data, object.frames, about);
  if (!about.times_ms.empty() && !std::isfinite(about.times_ms.back())) {
    bad(about.path, "the times of its frames are not finite; repair the header");
  }
  if (const auto rate =
          numbers_of(data, {0x0008, 0x2144, "RecommendedDisplayFrameRate"}, 1, about.path);
      !rate.empty()) {
    about.display_rate_hz = std::clamp(rate[0], 0.0, 1000.0);
  }
  take_intensity(data, about);
  about.is_lossy = is_lossy(dicom->file());
  take_shutter(data, about);
  read_mask_items(data, about);
  about.is_viewed_subtracted = text_of(data, {0x0028, 0x1090, "RecommendedViewingMode"}) == "SUB";
  about.modality_name = object.modality;
  about.sop_class_uid = text_of(data, {0x0008, 0x0016, "SOPClassUID"});
  about.sop_instance_uid = text_of(data, {0x0008, 0x0018, "SOPInstanceUID"});
  about.study_uid = object.identity.study_uid;
  about.series_description = object.description;
  about.image_type = text_of(data, {0x0008, 0x0008, "ImageType"});
  if (const auto others = items_of(data, {0x0008, 0x1140, "ReferencedImageSequence"});
      !others.empty()) {
    about.other_plane_class_uid =
        text_of(others[0].data, {0x0008, 0x1150, "ReferencedSOPClassUID"});
    about.other_plane_instance_uid =
        text_of(others[0].data, {0x0008, 0x1155, "ReferencedSOPInstanceUID"});
  }
  about.series_number = series_number_of(data);
  about.copied = copied_elements(data);
  about.equipment = equipment_elements(data);
  return about;
}

}  // namespace io

namespace {

/// Tells whether the ray from a point to the right crosses the edges of a polygon an odd number of
/// times.
bool is_inside(const std::vector<std::array<int, 2>>& polygon, double x, double y) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const double xi = polygon[i][0], yi = polygon[i][1], xj = polygon[j][0], yj = polygon[j][1];
    if ((yi > y) != (yj > y) && x < (xj - xi) * (y - yi) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

}  // namespace

bool contrast_raises(const Angiogram& about) {
  return about.intensity_sign != 0 ? about.intensity_sign < 0 : about.is_monochrome1;
}

std::optional<PixelRescaling> rescaling_of(const Angiogram& about) {
  const std::vector<float>& values = about.modality;
  if (values.size() < 2) return PixelRescaling{1, static_cast<double>(about.least_stored)};
  const double first = values.front();
  const double slope = (values.back() - first) / static_cast<double>(values.size() - 1);
  if (slope == 0) return std::nullopt;
  constexpr double kOfStep = 1e-3, kOfValue = 1e-6;  // values are of single precision
  for (size_t i = 0; i < values.size(); ++i) {
    const double straight = first + static_cast<double>(i) * slope;
    const double tolerance = kOfStep * std::abs(slope) + kOfValue * std::abs(straight);
    if (std::abs(values[i] - straight) > tolerance) return std::nullopt;
  }
  return PixelRescaling{slope, first};
}

bool Shutter::shows(int x, int y) const {
  if (has_rectangle && (x < left || x > right || y < upper || y > lower)) return false;
  if (has_circle && std::hypot(x - centre_x, y - centre_y) > radius) return false;
  return polygon.empty() || is_inside(polygon, x, y);
}

}  // namespace larch
