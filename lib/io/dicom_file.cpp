// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gdcmImageChangePlanarConfiguration.h>
#include <gdcmImageReader.h>
#include <gdcmMediaStorage.h>
#include <gdcmSequenceOfItems.h>
#include <gdcmTrace.h>

#include "larch/core/error.h"
#include "larch/io/dicom_syntax.h"

namespace larch::io {
namespace {

using gdcm::DataSet;
using gdcm::Tag;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

// GDCM throws its own exceptions, and bad_alloc for absurd lengths.
template <class F>
auto guarded(const std::string& path, F&& action) {
  gdcm::Trace::DebugOff();
  gdcm::Trace::WarningOff();
  gdcm::Trace::ErrorOff();
  try {
    return action();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    bad(path, "the DICOM file is damaged: a length in it is larger than the memory");
  } catch (const std::exception& error) {
    bad(path, std::string("cannot be read as DICOM: ") + error.what());
  }
}

std::string text_of(const DataSet& data, const Tag& tag) {
  if (!data.FindDataElement(tag)) return "";
  const gdcm::ByteValue* value = data.GetDataElement(tag).GetByteValue();
  if (value == nullptr || value->GetPointer() == nullptr) return "";
  std::string text(value->GetPointer(), value->GetLength());
  text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

int uint16_of(const DataSet& data, const Tag& tag, int missing) {
  if (!data.FindDataElement(tag)) return missing;
  const gdcm::ByteValue* value = data.GetDataElement(tag).GetByteValue();
  if (value == nullptr || value->GetPointer() == nullptr || value->GetLength() < 2) return missing;
  uint16_t number = 0;
  std::memcpy(&number, value->GetPointer(), sizeof number);
  return number;
}

// Decimal strings separated by backslashes; empty unless exactly `count` finite numbers stand
// there.
std::vector<double> decimals(const DataSet& data, const Tag& tag, size_t count) {
  const std::string text = text_of(data, tag);
  std::vector<double> numbers;
  const char* at = text.c_str();
  while (numbers.size() < count) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at || !std::isfinite(value)) return {};
    numbers.push_back(value);
    while (*end == ' ') ++end;
    if (*end != '\\') break;
    at = end + 1;
  }
  if (numbers.size() != count) return {};
  return numbers;
}

using Sequence = gdcm::SmartPointer<gdcm::SequenceOfItems>;

Sequence sequence_of(const DataSet& data, const Tag& tag) {
  if (!data.FindDataElement(tag)) return nullptr;
  return data.GetDataElement(tag).GetValueAsSQ();
}

// Values of one plane from a data set that may hold them: the file's own for plain images, an
// item of a functional group for enhanced ones. What is absent stays as it was.
void take_geometry(const DataSet& data, DicomPlane& plane) {
  if (const auto p = decimals(data, Tag(0x0020, 0x0032), 3); !p.empty()) {
    plane.position_mm = {p[0], p[1], p[2]};
    plane.has_position = true;
  }
  if (const auto o = decimals(data, Tag(0x0020, 0x0037), 6); !o.empty()) {
    plane.row = {o[0], o[1], o[2]};
    plane.column = {o[3], o[4], o[5]};
    plane.has_orientation = true;
  }
  auto spacing = decimals(data, Tag(0x0028, 0x0030), 2);
  if (spacing.empty()) spacing = decimals(data, Tag(0x0018, 0x1164), 2);
  if (!spacing.empty()) {  // between rows, then between columns
    plane.spacing_y_mm = spacing[0];
    plane.spacing_x_mm = spacing[1];
  }
  if (const auto t = decimals(data, Tag(0x0018, 0x0050), 1); !t.empty() && t[0] > 0) {
    plane.thickness_mm = t[0];
  }
}

void take_rescale(const DataSet& data, DicomPlane& plane) {
  const auto slope = decimals(data, Tag(0x0028, 0x1053), 1);
  const auto intercept = decimals(data, Tag(0x0028, 0x1052), 1);
  if (!slope.empty() && slope[0] != 0) plane.slope = slope[0];
  if (!intercept.empty()) plane.intercept = intercept[0];
  const auto dose = decimals(data, Tag(0x3004, 0x000e), 1);
  if (!dose.empty() && dose[0] != 0) plane.slope = dose[0];
}

void take_functional_groups(const DataSet& groups, DicomPlane& plane) {
  for (const Tag& tag :
       {Tag(0x0020, 0x9113), Tag(0x0020, 0x9116), Tag(0x0028, 0x9110), Tag(0x0028, 0x9145)}) {
    const Sequence items = sequence_of(groups, tag);
    if (!items || items->GetNumberOfItems() < 1) continue;
    const DataSet& item = items->GetItem(1).GetNestedDataSet();
    take_geometry(item, plane);
    take_rescale(item, plane);
  }
}

Component component_for(int bits, bool is_signed) {
  if (bits <= 8) return is_signed ? Component::kInt8 : Component::kUint8;
  if (bits <= 16) return is_signed ? Component::kInt16 : Component::kUint16;
  return is_signed ? Component::kInt32 : Component::kUint32;
}

int frames_of(const DataSet& data, const std::string& path) {
  const std::string text = text_of(data, Tag(0x0028, 0x0008));
  if (text.empty()) return 1;
  const double frames = std::strtod(text.c_str(), nullptr);
  if (!(frames >= 1 && frames <= 1e6)) {
    bad(path, "the header gives '" + text + "' frames; it is damaged");
  }
  return static_cast<int>(frames);
}

void add_planes(const DataSet& data, DicomObject& object) {
  DicomPlane plane;
  plane.size = {uint16_of(data, Tag(0x0028, 0x0011), 0), uint16_of(data, Tag(0x0028, 0x0010), 0),
                1};
  take_geometry(data, plane);
  take_rescale(data, plane);
  if (const Sequence shared = sequence_of(data, Tag(0x5200, 0x9229));
      shared && shared->GetNumberOfItems() > 0) {
    take_functional_groups(shared->GetItem(1).GetNestedDataSet(), plane);
  }
  const Sequence groups = sequence_of(data, Tag(0x5200, 0x9230));
  const std::string name = std::filesystem::path(object.path).filename().string();
  for (int frame = 0; frame < object.frames; ++frame) {
    DicomPlane own = plane;
    own.frame = frame;
    own.name = object.frames > 1 ? name + ", frame " + std::to_string(frame + 1) : name;
    if (groups && static_cast<size_t>(frame) < groups->GetNumberOfItems()) {
      take_functional_groups(groups->GetItem(static_cast<size_t>(frame) + 1).GetNestedDataSet(),
                             own);
    } else if (object.frames > 1) {
      own.has_position = false;  // one position cannot be that of several frames
    }
    object.planes.push_back(own);
  }
}

std::string kind_of(const gdcm::File& file) {
  gdcm::MediaStorage storage;
  if (storage.SetFromFile(file)) {
    const char* name = gdcm::MediaStorage::GetMSString(storage);
    for (const auto& [uid, kind] :
         {std::pair{"1.2.840.10008.5.1.4.1.1.88", "structured report"},
          std::pair{"1.2.840.10008.5.1.4.1.1.481.3", "radiotherapy structure set"},
          std::pair{"1.2.840.10008.1.3.10", "DICOMDIR index"}}) {
      if (name != nullptr && std::string(name).rfind(uid, 0) == 0) return kind;
    }
  }
  const std::string modality = text_of(file.GetDataSet(), Tag(0x0008, 0x0060));
  return modality.empty() ? "object without a modality" : "object of modality " + modality;
}

void mask_unused_bits(const gdcm::PixelFormat& format, std::vector<std::byte>& bytes) {
  const int stored = format.GetBitsStored(), allocated = format.GetBitsAllocated();
  if (allocated != 16 || stored >= 16 || stored < 1 || format.GetHighBit() != stored - 1) return;
  const int shift = 16 - stored;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t value = 0;
    std::memcpy(&value, &bytes[i], 2);
    value = static_cast<uint16_t>(value << shift);
    if (format.GetPixelRepresentation() != 0) {
      value = static_cast<uint16_t>(static_cast<int16_t>(value) >> shift);
    } else {
      value = static_cast<uint16_t>(value >> shift);
    }
    std::memcpy(&bytes[i], &value, 2);
  }
}

// Segmentations store one bit a voxel, the first in the lowest bit.
std::vector<std::byte> unpacked(const std::vector<std::byte>& bits, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = (bits[i / 8] >> (i % 8)) & std::byte{1};
  return bytes;
}

// The element fits into the file (see dicom_syntax.h); it must also hold the whole image.
void check_length(const gdcm::File& file, int64_t wanted, const std::string& path) {
  if (file.GetHeader().GetDataSetTransferSyntax().IsEncapsulated()) return;
  const gdcm::DataElement& element = file.GetDataSet().GetDataElement(Tag(0x7fe0, 0x0010));
  const gdcm::ByteValue* value = element.GetByteValue();
  const int64_t length = value != nullptr ? static_cast<int64_t>(value->GetLength()) : 0;
  if (length < wanted) {
    bad(path, "the pixel data are truncated: " + std::to_string(length) + " of " +
                  std::to_string(wanted) + " bytes are there; copy or export the file again");
  }
}

}  // namespace

DicomObject read_dicom_object(const std::string& path) {
  check_dicom_structure(path);
  return guarded(path, [&] {
    gdcm::Reader reader;
    reader.SetFileName(path.c_str());
    if (!reader.Read()) {
      bad(path, "cannot be read as DICOM: it is damaged, truncated or another kind of file");
    }
    const DataSet& data = reader.GetFile().GetDataSet();
    DicomObject object;
    object.path = path;
    object.kind = kind_of(reader.GetFile());
    object.series_uid = text_of(data, Tag(0x0020, 0x000e));
    object.modality = text_of(data, Tag(0x0008, 0x0060));
    object.description = text_of(data, Tag(0x0008, 0x103e));
    object.channels = uint16_of(data, Tag(0x0028, 0x0002), 1);
    object.component = component_for(uint16_of(data, Tag(0x0028, 0x0100), 16),
                                     uint16_of(data, Tag(0x0028, 0x0103), 0) != 0);
    object.has_pixels =
        uint16_of(data, Tag(0x0028, 0x0010), 0) > 0 && uint16_of(data, Tag(0x0028, 0x0011), 0) > 0;
    if (object.has_pixels) {
      object.frames = frames_of(data, path);
      add_planes(data, object);
    }
    return object;
  });
}

namespace {

// Image, as GDCM decodes it, with the checks that it leaves to its caller.
DicomPixels decode(gdcm::ImageReader& reader, const DicomObject& object) {
  const std::string& path = object.path;
  const gdcm::Image* image = &reader.GetImage();
  const gdcm::PhotometricInterpretation colours = image->GetPhotometricInterpretation();
  const gdcm::PixelFormat format = image->GetPixelFormat();
  DicomPixels pixels;
  pixels.channels = format.GetSamplesPerPixel();
  const bool rgb = colours == gdcm::PhotometricInterpretation::RGB && pixels.channels == 3;
  if (pixels.channels != 1 && !rgb) {
    bad(path, std::string("pixels are stored as ") + colours.GetString() +
                  ", which is not supported; convert to RGB or MONOCHROME2");
  }
  if (colours == gdcm::PhotometricInterpretation::PALETTE_COLOR) {
    bad(path, "pixels are stored with a colour palette, which is not supported; convert to RGB");
  }
  if (format.GetBitsAllocated() > 32 || format.GetScalarType() > gdcm::PixelFormat::INT32) {
    if (format.GetScalarType() != gdcm::PixelFormat::SINGLEBIT) {
      bad(path, "floating-point or 64-bit pixels are not supported; convert to 16 bits");
    }
  }
  const auto* size = image->GetDimensions();
  const int64_t frames = image->GetNumberOfDimensions() > 2 ? size[2] : 1;
  const DicomPlane& plane = object.planes.front();
  if (size[0] != static_cast<unsigned>(plane.size.x) ||
      size[1] != static_cast<unsigned>(plane.size.y) || frames != object.frames) {
    bad(path, "the compressed image is of another size than the header says; the file is damaged");
  }
  const int64_t count = static_cast<int64_t>(size[0]) * size[1] * frames * pixels.channels;
  const bool one_bit = format.GetScalarType() == gdcm::PixelFormat::SINGLEBIT;
  pixels.component = component_for(format.GetBitsAllocated(), format.GetPixelRepresentation() != 0);
  const int64_t bytes = one_bit ? (count + 7) / 8 : count * bytes_of(pixels.component);
  check_length(reader.GetFile(), bytes, path);
  gdcm::ImageChangePlanarConfiguration interleave;
  if (pixels.channels > 1 && image->GetPlanarConfiguration() == 1) {
    interleave.SetInput(*image);
    interleave.SetPlanarConfiguration(0);
    if (interleave.Change()) image = &interleave.GetOutput();
  }
  const auto length = static_cast<int64_t>(image->GetBufferLength());
  if (length < bytes) bad(path, "the pixel data are shorter than the header says; truncated?");
  pixels.bytes = allocate_voxels(length, path);
  if (!image->GetBuffer(reinterpret_cast<char*>(pixels.bytes.data()))) {
    bad(path,
        "the pixel data cannot be decoded: damaged, truncated, or a compression that is not "
        "supported");
  }
  pixels.bytes.resize(static_cast<size_t>(bytes));
  if (one_bit) pixels.bytes = unpacked(pixels.bytes, static_cast<size_t>(count));
  mask_unused_bits(format, pixels.bytes);
  return pixels;
}

}  // namespace

DicomPixels read_dicom_pixels(const DicomObject& object) {
  const std::string& path = object.path;
  if (!object.has_pixels) {
    bad(path, "it has no pixels, it is a DICOM " + object.kind + "; give an image");
  }
  return guarded(path, [&] {
    gdcm::ImageReader reader;
    reader.SetFileName(path.c_str());
    if (!reader.Read()) {
      bad(path, "the DICOM " + object.kind +
                    " has no pixels that can be read: it is damaged, truncated or of a kind that "
                    "is not supported");
    }
    if (!reader.GetFile().GetDataSet().FindDataElement(Tag(0x7fe0, 0x0010))) {
      bad(path, "the DICOM " + object.kind + " has no pixel data; give an image");
    }
    return decode(reader, object);
  });
}

}  // namespace larch::io
