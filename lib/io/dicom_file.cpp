// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom_file.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gdcmReader.h>

#include "larch/io/dicom_syntax.h"
#include "larch/io/dicom_values.h"

namespace larch::io {
namespace {

using gdcm::DataSet;
using gdcm::Tag;

constexpr DicomTag kPosition{0x0020, 0x0032, "ImagePositionPatient"};
constexpr DicomTag kOrientation{0x0020, 0x0037, "ImageOrientationPatient"};
constexpr DicomTag kPixelSpacing{0x0028, 0x0030, "PixelSpacing"};
constexpr DicomTag kImagerSpacing{0x0018, 0x1164, "ImagerPixelSpacing"};
constexpr DicomTag kAspect{0x0028, 0x0034, "PixelAspectRatio"};
constexpr DicomTag kThickness{0x0018, 0x0050, "SliceThickness"};
constexpr DicomTag kBetweenSlices{0x0018, 0x0088, "SpacingBetweenSlices"};
constexpr DicomTag kFrames{0x0028, 0x0008, "NumberOfFrames"};

// Values of one plane from a data set that may hold them: the file's own for plain images, an
// item of a functional group for enhanced ones. What is absent stays as it was.
void take_geometry(const DataSet& data, DicomPlane& plane, const std::string& path) {
  if (const auto p = numbers_of(data, kPosition, 3, path); !p.empty()) {
    plane.position_mm = {p[0], p[1], p[2]};
    plane.has_position = true;
  }
  if (const auto o = numbers_of(data, kOrientation, 6, path); !o.empty()) {
    plane.row = {o[0], o[1], o[2]};
    plane.column = {o[3], o[4], o[5]};
    plane.has_orientation = true;
  }
  for (const DicomTag& tag : {kImagerSpacing, kPixelSpacing}) {  // the second counts, if given
    const auto spacing = numbers_of(data, tag, 2, path);
    if (spacing.empty()) continue;
    if (!(spacing[0] > 0 && spacing[1] > 0)) {
      bad_dicom(path, std::string(tag.name) +
                          " is not positive; repair the header or export the file again");
    }
    plane.spacing_y_mm = spacing[0];  // between rows, then between columns
    plane.spacing_x_mm = spacing[1];
    plane.has_spacing = true;
  }
  if (const auto a = numbers_of(data, kAspect, 2, path); !a.empty()) plane.is_square = a[0] == a[1];
  if (const auto t = numbers_of(data, kThickness, 1, path); !t.empty()) {
    if (t[0] < 0) bad_dicom(path, "SliceThickness is negative; repair the header");
    if (t[0] > 0) plane.thickness_mm = t[0];
  }
  if (const auto s = numbers_of(data, kBetweenSlices, 1, path); !s.empty()) {
    plane.between_slices_mm = std::abs(s[0]);  // nuclear medicine signs it
  }
}

void take_functional_groups(const DataSet& groups, DicomPlane& plane, const std::string& path) {
  for (const Tag& tag :
       {Tag(0x0020, 0x9113), Tag(0x0020, 0x9116), Tag(0x0028, 0x9110), Tag(0x0028, 0x9145)}) {
    const DicomSequence items = sequence_of(groups, tag);
    if (!items || items->GetNumberOfItems() < 1) continue;
    const DataSet& item = items->GetItem(1).GetNestedDataSet();
    take_geometry(item, plane, path);
    take_rescale(item, plane, path);
  }
}

int frames_of(const DataSet& data, const std::string& path) {
  const auto frames = numbers_of(data, kFrames, 1, path);
  if (frames.empty()) return 1;
  if (!(frames[0] >= 1 && frames[0] <= 1e6) || frames[0] != std::floor(frames[0])) {
    bad_dicom(path, "the header gives '" + text_of(data, kFrames) + "' frames; it is damaged");
  }
  return static_cast<int>(frames[0]);
}

DicomPixelFormat format_of(const DataSet& data) {
  DicomPixelFormat format;
  format.samples = uint16_of(data, Tag(0x0028, 0x0002), 1);
  format.planar = uint16_of(data, Tag(0x0028, 0x0006), 0);
  format.bits_allocated = uint16_of(data, Tag(0x0028, 0x0100), 16);
  format.bits_stored = uint16_of(data, Tag(0x0028, 0x0101), format.bits_allocated);
  format.high_bit = uint16_of(data, Tag(0x0028, 0x0102), format.bits_stored - 1);
  format.representation = uint16_of(data, Tag(0x0028, 0x0103), 0);
  // Files from before 1993 may lack it; one sample is grey then, unless there is a palette.
  const std::string photometric = text_of(data, Tag(0x0028, 0x0004));
  const bool palette = data.FindDataElement(Tag(0x0028, 0x1101));
  if (!photometric.empty() || palette) format.photometric = photometric;
  return format;
}

// The name stands at its place in every CSA header of Siemens; the number of its items, and the
// length of the first, tell whether it has a value.
bool csa_says_mosaic(const DataSet& data) {
  const Tag header(0x0029, 0x1010);
  const gdcm::ByteValue* value =
      data.FindDataElement(header) ? data.GetDataElement(header).GetByteValue() : nullptr;
  if (value == nullptr || value->GetPointer() == nullptr) return false;
  const std::string_view bytes(value->GetPointer(), value->GetLength());
  const size_t name = bytes.find("NumberOfImagesInMosaic");
  constexpr size_t kNameBytes = 64, kItems = kNameBytes + 12, kLength = kNameBytes + 20 + 4;
  if (name == std::string_view::npos || bytes.size() - name < kLength + 4) return false;
  int32_t items = 0, length = 0;
  std::memcpy(&items, bytes.data() + name + kItems, 4);
  std::memcpy(&length, bytes.data() + name + kLength, 4);
  return items > 0 && length > 0;
}

// Slices side by side in one picture: the position is that of the whole sheet.
void check_no_mosaic(const DataSet& data, const std::string& path) {
  const bool siemens = text_of(data, Tag(0x0019, 0x0010)) == "SIEMENS MR HEADER";
  const bool mosaic = text_of(data, Tag(0x0008, 0x0008)).find("MOSAIC") != std::string::npos ||
                      (siemens && uint16_of(data, Tag(0x0019, 0x100a), 0) > 1) ||
                      csa_says_mosaic(data);
  if (!mosaic) return;
  bad_dicom(path,
            "it is a Siemens mosaic: its slices lie side by side in one picture; convert it first, "
            "for example with dcm2niix, and give the NIfTI file");
}

void add_planes(const gdcm::File& file, DicomObject& object) {
  const DataSet& data = file.GetDataSet();
  DicomPlane plane;
  plane.size = {uint16_of(data, Tag(0x0028, 0x0011), 0), uint16_of(data, Tag(0x0028, 0x0010), 0),
                1};
  take_geometry(data, plane, object.path);
  take_rescale(data, plane, object.path);
  if (const DicomSequence shared = sequence_of(data, Tag(0x5200, 0x9229));
      shared && shared->GetNumberOfItems() > 0) {
    take_functional_groups(shared->GetItem(1).GetNestedDataSet(), plane, object.path);
  }
  const DicomSequence groups = sequence_of(data, Tag(0x5200, 0x9230));
  const auto described = groups ? static_cast<int>(groups->GetNumberOfItems()) : 0;
  if (described > 0 && described != object.frames) {
    bad_dicom(object.path, "it describes " + std::to_string(described) + " frames but has " +
                               std::to_string(object.frames) +
                               "; repair the header or export the file again");
  }
  check_pixel_claims(file, object, plane.size);
  const std::string name = std::filesystem::path(object.path).filename().string();
  for (int frame = 0; frame < object.frames; ++frame) {
    DicomPlane own = plane;
    own.frame = frame;
    own.name = object.frames > 1 ? name + ", frame " + std::to_string(frame + 1) : name;
    if (described > 0) {
      take_functional_groups(groups->GetItem(static_cast<size_t>(frame) + 1).GetNestedDataSet(),
                             own, object.path);
    } else if (object.frames > 1) {
      own.has_position = false;  // one position cannot be that of several frames
    }
    object.planes.push_back(own);
  }
}

// All that read_dicom needs of an image; throws InputError for what it cannot use.
void describe_image(const gdcm::File& file, DicomObject& object) {
  const DataSet& data = file.GetDataSet();
  check_no_mosaic(data, object.path);
  object.format = format_of(data);
  check_pixel_format(object.format, object.path);
  object.frames = frames_of(data, object.path);
  add_planes(file, object);
  object.lut = read_modality_lut(data, object.format.representation == 1, object.path);
  if (object.lut.values.empty()) return;
  for (const DicomPlane& plane : object.planes) {
    if (plane.slope != 1 || plane.intercept != 0 || object.format.samples != 1) {
      bad_dicom(object.path,
                "it has a Modality LUT and a RescaleSlope or RescaleIntercept, of which one alone "
                "can be meant; repair the header or export the file again");
    }
  }
}

std::string kind_of(const gdcm::File& file) {
  std::string storage = text_of(file.GetDataSet(), Tag(0x0008, 0x0016));
  if (storage.empty()) storage = text_of(file.GetHeader(), Tag(0x0002, 0x0002));
  for (const auto& [uid, kind] :
       {std::pair{"1.2.840.10008.5.1.4.1.1.88.", "structured report"},
        std::pair{"1.2.840.10008.5.1.4.1.1.481.3", "radiotherapy structure set"},
        std::pair{"1.2.840.10008.1.3.10", "DICOMDIR index"}}) {
    if (storage.rfind(uid, 0) == 0) return kind;
  }
  const std::string modality = text_of(file.GetDataSet(), Tag(0x0008, 0x0060));
  return modality.empty() ? "object without a modality" : "object of modality " + modality;
}

// Padding of the parts of a name ("DOE^JOHN^^") is none of the name.
std::string name_of_patient(const DataSet& data) {
  std::string name = text_of(data, Tag(0x0010, 0x0010));
  while (!name.empty() && (name.back() == '^' || name.back() == ' ')) name.pop_back();
  return name;
}

}  // namespace

DicomObject read_dicom_object(const std::string& path) {
  check_dicom_structure(path);
  return with_gdcm(path, [&] {
    gdcm::Reader reader;
    reader.SetFileName(path.c_str());
    if (!reader.Read()) {
      bad_dicom(path, "cannot be read as DICOM: it is damaged, truncated or another kind of file");
    }
    const DataSet& data = reader.GetFile().GetDataSet();
    DicomObject object;
    object.path = path;
    object.kind = kind_of(reader.GetFile());
    object.series_uid = text_of(data, Tag(0x0020, 0x000e));
    object.modality = text_of(data, Tag(0x0008, 0x0060));
    object.description = text_of(data, Tag(0x0008, 0x103e));
    object.identity = {text_of(data, Tag(0x0010, 0x0020)), name_of_patient(data),
                       text_of(data, Tag(0x0010, 0x0030)), text_of(data, Tag(0x0020, 0x000d)),
                       text_of(data, Tag(0x0020, 0x0052))};
    object.has_pixels =
        uint16_of(data, Tag(0x0028, 0x0010), 0) > 0 && uint16_of(data, Tag(0x0028, 0x0011), 0) > 0;
    if (!object.has_pixels) return object;
    try {
      describe_image(reader.GetFile(), object);
    } catch (const InputError& error) {
      object.problem = error.what();
    }
    return object;
  });
}

}  // namespace larch::io
