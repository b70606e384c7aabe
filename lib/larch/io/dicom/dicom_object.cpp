// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_object.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

constexpr DicomTag kPosition{0x0020, 0x0032, "ImagePositionPatient"};
constexpr DicomTag kOrientation{0x0020, 0x0037, "ImageOrientationPatient"};
constexpr DicomTag kPixelSpacing{0x0028, 0x0030, "PixelSpacing"};
constexpr DicomTag kImagerSpacing{0x0018, 0x1164, "ImagerPixelSpacing"};
constexpr DicomTag kAspect{0x0028, 0x0034, "PixelAspectRatio"};
constexpr DicomTag kThickness{0x0018, 0x0050, "SliceThickness"};
constexpr DicomTag kBetweenSlices{0x0018, 0x0088, "SpacingBetweenSlices"};
constexpr DicomTag kFrames{0x0028, 0x0008, "NumberOfFrames"};
constexpr DicomTag kMediaSopClass{0x0002, 0x0002, "MediaStorageSOPClassUID"};
constexpr DicomTag kImageType{0x0008, 0x0008, "ImageType"};
constexpr DicomTag kSopClass{0x0008, 0x0016, "SOPClassUID"};
constexpr DicomTag kSopInstance{0x0008, 0x0018, "SOPInstanceUID"};
constexpr DicomTag kModality{0x0008, 0x0060, "Modality"};
constexpr DicomTag kDescription{0x0008, 0x103e, "SeriesDescription"};
constexpr DicomTag kPatientName{0x0010, 0x0010, "PatientName"};
constexpr DicomTag kPatientId{0x0010, 0x0020, "PatientID"};
constexpr DicomTag kBirthDate{0x0010, 0x0030, "PatientBirthDate"};
constexpr DicomTag kSiemensHeader{0x0019, 0x0010, "the private creator (0019,0010)"};
constexpr DicomTag kMosaicImages{0x0019, 0x100a, "the number of images in the mosaic (0019,100A)"};
constexpr DicomTag kStudyUid{0x0020, 0x000d, "StudyInstanceUID"};
constexpr DicomTag kSeriesUid{0x0020, 0x000e, "SeriesInstanceUID"};
constexpr DicomTag kReferenceFrameUid{0x0020, 0x0052, "FrameOfReferenceUID"};
constexpr DicomTag kPlanePositions{0x0020, 0x9113, "PlanePositionSequence"};
constexpr DicomTag kPlaneOrientations{0x0020, 0x9116, "PlaneOrientationSequence"};
constexpr DicomTag kDetectors{0x0054, 0x0022, "DetectorInformationSequence"};
constexpr DicomTag kSliceVector{0x0054, 0x0080, "SliceVector"};
constexpr DicomTag kSamples{0x0028, 0x0002, "SamplesPerPixel"};
constexpr DicomTag kPhotometric{0x0028, 0x0004, "PhotometricInterpretation"};
constexpr DicomTag kPlanar{0x0028, 0x0006, "PlanarConfiguration"};
constexpr DicomTag kRows{0x0028, 0x0010, "Rows"};
constexpr DicomTag kColumns{0x0028, 0x0011, "Columns"};
constexpr DicomTag kBitsAllocated{0x0028, 0x0100, "BitsAllocated"};
constexpr DicomTag kBitsStored{0x0028, 0x0101, "BitsStored"};
constexpr DicomTag kHighBit{0x0028, 0x0102, "HighBit"};
constexpr DicomTag kRepresentation{0x0028, 0x0103, "PixelRepresentation"};
constexpr DicomTag kPalette{0x0028, 0x1101, "RedPaletteColorLookupTableDescriptor"};
constexpr DicomTag kPixelMeasures{0x0028, 0x9110, "PixelMeasuresSequence"};
constexpr DicomTag kValueTransformations{0x0028, 0x9145, "PixelValueTransformationSequence"};
constexpr DicomTag kCsaHeader{0x0029, 0x1010, "the CSA header (0029,1010)"};
constexpr DicomTag kSegmentOfFrame{0x0062, 0x000a, "SegmentIdentificationSequence"};
constexpr DicomTag kReferencedSegment{0x0062, 0x000b, "ReferencedSegmentNumber"};
constexpr DicomTag kSharedGroups{0x5200, 0x9229, "SharedFunctionalGroupsSequence"};
constexpr DicomTag kFrameGroups{0x5200, 0x9230, "PerFrameFunctionalGroupsSequence"};
constexpr DicomTag kIntercept{0x0028, 0x1052, "RescaleIntercept"};
constexpr DicomTag kSlope{0x0028, 0x1053, "RescaleSlope"};
constexpr DicomTag kDoseScaling{0x3004, 0x000e, "DoseGridScaling"};
constexpr DicomTag kModalityLut{0x0028, 0x3000, "ModalityLUTSequence"};
constexpr DicomTag kLutDescriptor{0x0028, 0x3002, "LUTDescriptor"};
constexpr DicomTag kLutData{0x0028, 0x3006, "LUTData"};
constexpr DicomTag kFrameOffsets{0x3004, 0x000c, "GridFrameOffsetVector"};

// Values of one plane from a data set that may hold them: the file's own for plain images, an
// item of a functional group for enhanced ones. What is absent stays as it was.
void take_geometry(const DicomDataset& data, DicomPlane& plane, const std::string& path) {
  if (const auto p = numbers_of(data, kPosition, 3, path); !p.empty()) {
    plane.position_mm = {p[0], p[1], p[2]};
    plane.has_position = true;
  }
  if (const auto o = numbers_of(data, kOrientation, 6, path); !o.empty()) {
    plane.row = {o[0], o[1], o[2]};
    plane.column = {o[3], o[4], o[5]};
    plane.has_orientation = true;
  }
  for (const DicomTag& tag : {kImagerSpacing, kPixelSpacing}) {  // PixelSpacing goes before
    const auto spacing = numbers_of(data, tag, 2, path);
    if (spacing.empty() || (spacing[0] == 0 && spacing[1] == 0)) continue;  // it is not known
    if (!(spacing[0] > 0 && spacing[1] > 0)) {
      bad_header(path, std::string(tag.name) + " is not positive");
    }
    plane.spacing_y_mm = spacing[0];  // between rows, then between columns
    plane.spacing_x_mm = spacing[1];
    plane.has_spacing = true;
  }
  if (const auto a = numbers_of(data, kAspect, 2, path); !a.empty() && a[0] != a[1]) {
    if (!(a[0] > 0 && a[1] > 0)) bad_header(path, "PixelAspectRatio is not positive");
    plane.aspect_y = a[0];
    plane.aspect_x = a[1];
  }
  if (const auto t = numbers_of(data, kThickness, 1, path); !t.empty()) {
    if (t[0] < 0) bad(path, "SliceThickness is negative; repair the header");
    if (t[0] > 0) plane.thickness_mm = t[0];
  }
  if (const auto s = numbers_of(data, kBetweenSlices, 1, path); !s.empty()) {
    plane.between_slices_mm = std::abs(s[0]);  // nuclear medicine signs it
  }
}

void check_slope(double slope, double intercept, const DicomTag& tag, const std::string& path) {
  const double largest = std::abs(slope) * 4294967296.0 + std::abs(intercept);
  if (slope != 0 && largest < static_cast<double>(std::numeric_limits<float>::max())) return;
  bad_header(path,
             std::string(tag.name) + (slope == 0 ? " is 0, which would make all voxels the same"
                                                 : " or its intercept is larger than any value"));
}

// RescaleSlope and RescaleIntercept, or DoseGridScaling, in the same way.
void take_rescale(const DicomDataset& data, DicomPlane& plane, const std::string& path) {
  const auto slope = numbers_of(data, kSlope, 1, path);
  const auto intercept = numbers_of(data, kIntercept, 1, path);
  const auto dose = numbers_of(data, kDoseScaling, 1, path);
  if (slope.empty() != intercept.empty()) {
    bad_header(path, slope.empty() ? "RescaleIntercept is given without RescaleSlope"
                                   : "RescaleSlope is given without RescaleIntercept");
  }
  if (!slope.empty()) {
    check_slope(slope[0], intercept[0], kSlope, path);
    plane.slope = slope[0];
    plane.intercept = intercept[0];
  }
  if (dose.empty()) return;
  check_slope(dose[0], 0, kDoseScaling, path);
  if (plane.slope != 1 || plane.intercept != 0) {
    bad(path,
        "it has a DoseGridScaling and a RescaleSlope or RescaleIntercept of its own; repair "
        "the header: a dose has the first alone");
  }
  plane.slope = dose[0];
}

void take_functional_groups(const DicomDataset& groups, DicomPlane& plane,
                            const std::string& path) {
  for (const DicomTag& tag :
       {kPlanePositions, kPlaneOrientations, kPixelMeasures, kValueTransformations}) {
    const std::span<const DicomItem> items = items_of(groups, tag);
    if (items.empty()) continue;
    take_geometry(items[0].data, plane, path);
    take_rescale(items[0].data, plane, path);
  }
  if (const std::span<const DicomItem> items = items_of(groups, kSegmentOfFrame); !items.empty()) {
    plane.segment = uint16_of(items[0].data, kReferencedSegment, 0, path);
  }
}

int number_of_frames(const DicomDataset& data, const std::string& path) {
  const auto frames = numbers_of(data, kFrames, 1, path);
  if (frames.empty()) return 1;
  if (!(frames[0] >= 1 && frames[0] <= 1e6) || frames[0] != std::floor(frames[0])) {
    bad(path, "the header gives " + shown(text_of(data, kFrames)) + " frames; it is damaged");
  }
  return static_cast<int>(frames[0]);
}

// Which bits of a sample are overlays, as was usual before 2004: a group 60xx without data of its
// own names the bit (PS3.3 of 2003, C.9.2).
uint32_t overlay_bits_of(const DicomDataset& data, const std::string& path) {
  uint32_t bits = 0;
  for (uint16_t group = 0x6000; group <= 0x601e; group = static_cast<uint16_t>(group + 2)) {
    if (data.find({group, 0x3000, "OverlayData"}) != nullptr) continue;
    const int bit = uint16_of(data, {group, 0x0102, "OverlayBitPosition"}, 0, path);
    if (bit > 0 && bit < 32) bits |= uint32_t{1} << bit;
  }
  return bits;
}

DicomPixelFormat format_of(const DicomDataset& data, const std::string& path) {
  DicomPixelFormat format;
  format.samples = uint16_of(data, kSamples, 1, path);
  format.planar = uint16_of(data, kPlanar, 0, path);
  if (!has_value(data, kBitsAllocated)) bad_header(path, "BitsAllocated is missing");
  format.bits_allocated = uint16_of(data, kBitsAllocated, 0, path);
  format.bits_stored = uint16_of(data, kBitsStored, format.bits_allocated, path);
  format.high_bit = uint16_of(data, kHighBit, format.bits_stored - 1, path);
  format.representation = uint16_of(data, kRepresentation, 0, path);
  format.overlay_bits = overlay_bits_of(data, path);
  // Files from before 1993 may lack it; one sample is grey then, unless there is a palette.
  const std::string photometric = text_of(data, kPhotometric);
  const bool palette = data.find(kPalette) != nullptr;
  if (!photometric.empty() || palette) format.photometric = photometric;
  return format;
}

// Throws unless it is a format that DicomPixels reads.
void check_pixel_format(const DicomPixelFormat& format, const std::string& path) {
  const std::string& photometric = format.photometric;
  const auto is_of = [&](std::initializer_list<const char*> known) {
    return std::ranges::find(known, photometric) != known.end();
  };
  if (!(format.samples == 1 && is_of({"MONOCHROME1", "MONOCHROME2", "PALETTE COLOR"})) &&
      !(format.samples == 3 && is_of({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT"}))) {
    bad(path, "pixels are stored as '" + photometric + "' with " + std::to_string(format.samples) +
                  " samples, which is not supported; convert to RGB or MONOCHROME2");
  }
  if (!guarded(Guard::kDicomBitRules)) return;
  const int allocated = format.bits_allocated, stored = format.bits_stored;
  const auto rule = [&](bool kept, const std::string& what) {
    if (!kept) bad_header(path, what);
  };
  rule(allocated == 1 || allocated == 8 || allocated == 16 || allocated == 32,
       "BitsAllocated is " + std::to_string(allocated) + "; 1, 8, 16 and 32 are supported");
  rule(stored >= 1 && stored <= allocated, "BitsStored is " + std::to_string(stored) + " of " +
                                               std::to_string(allocated) + " allocated");
  rule(format.high_bit >= stored - 1 && format.high_bit < allocated,
       "HighBit is " + std::to_string(format.high_bit) + " with " + std::to_string(stored) +
           " bits stored of " + std::to_string(allocated) + " allocated");
  rule(format.samples == 1 || stored == allocated,
       "BitsStored is " + std::to_string(stored) + " of " + std::to_string(allocated) +
           " allocated, which is supported for grey images alone");
  rule(!format.is_ybr() || (allocated == 8 && format.representation == 0),
       "YBR colours have 8 bits without a sign");
  rule(format.representation == 0 || format.representation == 1,
       "PixelRepresentation is " + std::to_string(format.representation) + ", neither 0 nor 1");
  rule(format.samples == 1 || format.planar == 0 || format.planar == 1,
       "PlanarConfiguration is " + std::to_string(format.planar) + ", neither 0 nor 1");
  rule(allocated != 1 || (format.samples == 1 && format.representation == 0),
       "one bit is allocated for a sample that is signed or a colour");
}

// The name stands at its place in every CSA header of Siemens; the number of its items, and the
// length of the first, tell whether it has a value.
bool csa_says_mosaic(const DicomDataset& data) {
  const DicomElement* header = data.find(kCsaHeader);
  if (header == nullptr) return false;
  const std::string_view bytes = header->value;
  const size_t name = bytes.find("NumberOfImagesInMosaic");
  constexpr size_t kNameBytes = 64, kItems = kNameBytes + 12, kLength = kNameBytes + 20 + 4;
  if (name == std::string_view::npos || bytes.size() - name < kLength + 4) return false;
  int32_t items = 0, length = 0;
  std::memcpy(&items, bytes.data() + name + kItems, 4);
  std::memcpy(&length, bytes.data() + name + kLength, 4);
  return items > 0 && length > 0;
}

// The element is a 16-bit number; some writers change it to text. Two digits, or a digit and a
// space, are text in any case: as a number they would be thousands of images.
int images_in_mosaic(const DicomDataset& data) {
  const DicomElement* element = data.find(kMosaicImages);
  if (element == nullptr || element->value.empty()) return 0;
  const bool digits = element->value.find_first_not_of("0123456789 ") == std::string_view::npos;
  if (digits || element->has_vr("IS") || element->has_vr("DS")) {
    return std::atoi(text_of(data, kMosaicImages).c_str());
  }
  const std::vector<uint16_t> numbers = uint16s_of(data, kMosaicImages);
  return numbers.empty() ? 0 : numbers[0];
}

// Slices side by side in one picture: the position is that of the whole sheet.
void check_no_mosaic(const DicomDataset& data, const std::string& path) {
  const bool siemens = text_of(data, kSiemensHeader) == "SIEMENS MR HEADER";
  const bool mosaic = text_of(data, kImageType).find("MOSAIC") != std::string::npos ||
                      (siemens && images_in_mosaic(data) > 1) || csa_says_mosaic(data);
  if (!mosaic) return;
  bad(path,
      "it is a Siemens mosaic: its slices lie side by side in one picture; convert it first, "
      "for example with dcm2niix, and give the NIfTI file");
}

// Slices that nuclear medicine reconstructed: their geometry is that of the first detector.
bool is_reconstruction(const DicomDataset& data) {
  return text_of(data, kImageType).find("\\RECON ") != std::string::npos &&
         !items_of(data, kDetectors).empty();
}

// How far along the normal such slices lie behind the first one, by the sign of their spacing
// (PS3.3, C.8.4.15); none if the file does not say it.
std::vector<double> slice_offsets_of(const DicomDataset& data, const DicomObject& object) {
  const auto spacing = numbers_of(data, kBetweenSlices, 1, object.path);
  const std::vector<uint16_t> slices = uint16s_of(data, kSliceVector);
  if (spacing.empty() || slices.size() != static_cast<size_t>(object.frames)) return {};
  if (std::ranges::count(slices, 0) > 0) return {};  // they count from 1
  std::vector<double> offsets;
  offsets.reserve(slices.size());
  for (const uint16_t slice : slices) offsets.push_back((slice - 1) * spacing[0]);
  return offsets;
}

// How far along the normal the frames of a radiotherapy dose lie behind its position; none if the
// file does not say it. The vector starts with 0, or else gives the z of axial frames (PS3.3,
// C.8.8.3.2).
std::vector<double> frame_offsets_of(const DicomDataset& data, const DicomPlane& plane,
                                     const DicomObject& object) {
  if (object.frames == 1) return {};
  std::vector<double> offsets =
      numbers_of(data, kFrameOffsets, static_cast<size_t>(object.frames), object.path);
  if (offsets.empty() || offsets[0] == 0) return offsets;
  constexpr double kSameMm = 1e-3, kAxial = 1e-6;
  const double up = cross(plane.row, plane.column).z;
  if (std::abs(std::abs(up) - 1) > kAxial || std::abs(offsets[0] - plane.position_mm.z) > kSameMm) {
    bad_header(object.path,
               "GridFrameOffsetVector starts with neither 0 nor, for axial frames, the z of "
               "ImagePositionPatient");
  }
  for (double& offset : offsets) offset = (offset - plane.position_mm.z) * up;
  return offsets;
}

void add_planes(const DicomFile& file, const Vec3i& size, DicomObject& object) {
  const DicomDataset& data = file.data;
  DicomPlane plane;
  plane.size = size;
  take_geometry(data, plane, object.path);
  take_rescale(data, plane, object.path);
  const bool is_nuclear = is_reconstruction(data);
  if (is_nuclear) take_geometry(items_of(data, kDetectors)[0].data, plane, object.path);
  if (const std::span<const DicomItem> shared = items_of(data, kSharedGroups); !shared.empty()) {
    take_functional_groups(shared[0].data, plane, object.path);
  }
  const std::span<const DicomItem> groups = items_of(data, kFrameGroups);
  const auto described = static_cast<int64_t>(groups.size());
  if (described > 0 && described != object.frames) {
    bad_header(object.path, "it describes " + std::to_string(described) + " frames but has " +
                                std::to_string(object.frames));
  }
  check_pixel_claims(file, object, size);
  // Frames of X-ray angiograms and fluoroscopy, enhanced ones included, follow in time, wherever
  // the file puts them. What is computed from them in three dimensions has classes of its own.
  const bool is_cine =
      object.frames > 1 && text_of(data, kSopClass).starts_with("1.2.840.10008.5.1.4.1.1.12.");
  const std::vector<double> offsets = is_cine      ? std::vector<double>()
                                      : is_nuclear ? slice_offsets_of(data, object)
                                                   : frame_offsets_of(data, plane, object);
  const Vec3d normal = cross(plane.row, plane.column);
  const std::string name = std::filesystem::path(object.path).filename().string();
  for (int frame = 0; frame < object.frames; ++frame) {
    DicomPlane own = plane;
    own.frame = frame;
    own.name = object.frames > 1 ? name + ", frame " + std::to_string(frame + 1) : name;
    if (described > 0) {
      take_functional_groups(groups[static_cast<size_t>(frame)].data, own, object.path);
    } else if (!offsets.empty()) {
      own.position_mm += normal * offsets[static_cast<size_t>(frame)];
    } else if (object.frames > 1) {
      own.has_position = false;  // one position cannot be that of several frames
    }
    if (is_cine) own.has_position = false;
    object.planes.push_back(own);
    object.frames_alike = object.frames > 1 && described == 0 && offsets.empty();
    if (object.frames_alike) return;
  }
}

// A table of values: its elements in `data`, and the name of what it is for.
DicomLut read_table(const DicomDataset& data, const DicomTag& shape, const DicomTag& content,
                    bool is_signed, const std::string& name, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    bad_header(path, "its " + name + " cannot be applied: " + what);
  };
  const std::vector<uint16_t> descriptor = uint16s_of(data, shape);
  if (descriptor.size() != 3) bad(shape.name + std::string(" is not three numbers"));
  const size_t entries = descriptor[0] == 0 ? 65536 : descriptor[0];  // PS3.3, C.11.1.1.1
  const int bits = descriptor[2];
  if (bits < 8 || bits > 16) bad("it has " + std::to_string(bits) + " bits an entry");
  std::vector<uint16_t> words = uint16s_of(data, content);
  if (bits == 8 && words.size() == (entries + 1) / 2 && entries > 1) {  // two entries in a word
    const std::vector<uint16_t> packed = words;
    words.assign(entries, 0);
    for (size_t i = 0; i < entries; ++i) {
      words[i] = static_cast<uint16_t>(packed[i / 2] >> (8 * (i % 2)) & 255);
    }
  }
  if (words.size() != entries) {
    bad(content.name + std::string(" has ") + std::to_string(words.size()) +
        " entries instead of " + std::to_string(entries));
  }
  for (const uint16_t word : words) {
    if (word >> bits != 0) bad("an entry has more than its " + std::to_string(bits) + " bits");
  }
  DicomLut lut;
  lut.first = is_signed ? static_cast<int16_t>(descriptor[1]) : descriptor[1];
  lut.values.assign(words.begin(), words.end());
  return lut;
}

// The Modality LUT Sequence (PS3.3, C.11.1).
DicomLut read_modality_lut(const DicomDataset& data, bool is_signed, const std::string& path) {
  const std::span<const DicomItem> items = items_of(data, kModalityLut);
  if (items.empty()) return {};
  if (items.size() != 1) {
    bad_header(path, "its Modality LUT cannot be applied: the sequence holds more than one table");
  }
  return read_table(items[0].data, kLutDescriptor, kLutData, is_signed, "Modality LUT", path);
}

// The luminance of a palette (PS3.3, C.7.6.3.1.5).
DicomLut read_palette(const DicomDataset& data, bool is_signed, const std::string& path) {
  constexpr double kWeights[] = {0.2126, 0.7152, 0.0722};
  DicomLut lut;
  std::vector<double> sums;
  for (uint16_t colour = 0; colour < 3; ++colour) {
    const DicomTag shape{0x0028, static_cast<uint16_t>(0x1101 + colour), "its descriptor"};
    const DicomTag content{0x0028, static_cast<uint16_t>(0x1201 + colour),
                           "a table of its colours"};
    if (uint16s_of(data, shape) != uint16s_of(data, kPalette)) {
      bad_header(path, "its palette cannot be applied: its colours are of different tables");
    }
    lut = read_table(data, shape, content, is_signed, "palette", path);
    sums.resize(lut.values.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += kWeights[colour] * static_cast<double>(lut.values[i]);
    }
  }
  lut.values.assign(sums.begin(), sums.end());
  return lut;
}

// All that read_dicom needs of an image; throws InputError for what it cannot use.
void describe_image(const DicomFile& file, const Vec3i& size, DicomObject& object) {
  const DicomDataset& data = file.data;
  if (size.x < 1 || size.y < 1) {
    bad_header(object.path, "it has no pixels that can be read: Rows or Columns is missing or 0");
  }
  check_no_mosaic(data, object.path);
  object.format = format_of(data, object.path);
  object.segments = segments_of(data, object.path);
  if (object.segments) object.format.photometric = "MONOCHROME2";  // a palette is for show
  check_pixel_format(object.format, object.path);
  object.frames = number_of_frames(data, object.path);
  add_planes(file, size, object);
  for (DicomPlane& plane : object.planes) {
    if (!object.segments) break;
    const auto label = object.segments->renumbered.find(plane.segment);
    if (label != object.segments->renumbered.end()) plane.segment = label->second;
  }
  const bool is_signed = object.format.representation == 1;
  const bool is_palette = object.format.photometric == "PALETTE COLOR";
  object.lut = is_palette ? read_palette(data, is_signed, object.path)
                          : read_modality_lut(data, is_signed, object.path);
  if (object.lut.values.empty()) return;
  if (object.format.samples != 1) {
    bad_header(object.path,
               "it has a Modality LUT, which is meant for one sample per pixel, and colours");
  }
  for (const DicomPlane& plane : object.planes) {
    if (plane.slope != 1 || plane.intercept != 0) {
      bad_header(object.path,
                 std::string("it has a ") + (is_palette ? "palette" : "Modality LUT") +
                     " and a RescaleSlope or RescaleIntercept, of which one alone can be meant");
    }
  }
}

std::string kind_of(const DicomFile& file) {
  std::string storage = text_of(file.data, kSopClass);
  if (storage.empty()) storage = text_of(file.meta, kMediaSopClass);
  for (const auto& [uid, kind] :
       {std::pair{"1.2.840.10008.5.1.4.1.1.88.", "structured report"},
        std::pair{"1.2.840.10008.5.1.4.1.1.481.3", "radiotherapy structure set"},
        std::pair{"1.2.840.10008.1.3.10", "DICOMDIR index"}}) {
    if (storage.rfind(uid, 0) == 0) return kind;
  }
  const std::string modality = text_of(file.data, kModality);
  return modality.empty() ? "object without a modality" : "object of modality " + modality;
}

}  // namespace

DicomObject describe_dicom(const DicomFile& file) {
  const std::string& path = *file.path;
  const DicomDataset& data = file.data;
  DicomObject object;
  object.path = path;
  object.kind = kind_of(file);
  object.class_uid = text_of(data, kSopClass);
  object.instance_uid = text_of(data, kSopInstance);
  object.series_uid = text_of(data, kSeriesUid);
  object.modality = text_of(data, kModality);
  object.description = text_of(data, kDescription);
  object.identity = {text_of(data, kPatientId), text_of(data, kPatientName),
                     text_of(data, kBirthDate), text_of(data, kStudyUid),
                     text_of(data, kReferenceFrameUid)};
  if (!file.damage.empty()) {
    object.has_pixels = true;  // perhaps
    object.problem = file.damage;
    return object;
  }
  // Padding of the parts of a name ("DOE^JOHN^^") is none of the name.
  std::string& name = object.identity.patient_name;
  name.erase(name.find_last_not_of("^ ") + 1);
  const Vec3i size{uint16_of(data, kColumns, 0, path), uint16_of(data, kRows, 0, path), 1};
  object.has_pixels = (size.x > 0 && size.y > 0) || file.place;
  object.transfer_syntax = file.transfer_syntax;
  object.place = file.place;
  if (!object.has_pixels) return object;
  try {
    describe_image(file, size, object);
  } catch (const InputError& error) {
    object.problem = error.what();
  }
  return object;
}

}  // namespace larch::io
