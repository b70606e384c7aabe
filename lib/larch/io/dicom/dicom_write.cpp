// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_write.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <span>
#include <sstream>
#include <vector>

#include <gdcmWriter.h>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch {
namespace {

constexpr const char* kMrImageStorage = "1.2.840.10008.5.1.4.1.1.4";

/// A decimal string holds at most 16 characters (PS3.5, 6.2).
std::string decimal(double value) {
  std::array<char, 40> text;
  for (int digits = 12; digits > 0; --digits) {
    const int length = std::snprintf(text.data(), text.size(), "%.*g", digits, value + 0.0);
    if (length <= 16) break;
  }
  return text.data();
}

std::string decimals(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : "\\") + decimal(value);
  return text;
}

/// Elements of a data set; a value of odd length is padded (PS3.5, 6.2).
class Elements {
 public:
  explicit Elements(gdcm::DataSet& data) : data_(data) {}

  void text(uint16_t group, uint16_t element, gdcm::VR::VRType type, std::string value) {
    if (value.size() % 2 != 0) value += type == gdcm::VR::UI ? '\0' : ' ';
    put(group, element, type, value.data(), value.size());
  }
  void number(uint16_t group, uint16_t element, uint16_t value) {
    const std::array<char, 2> bytes{static_cast<char>(value & 0xff), static_cast<char>(value >> 8)};
    put(group, element, gdcm::VR::US, bytes.data(), bytes.size());
  }
  void put(uint16_t group, uint16_t element, gdcm::VR::VRType type, const char* bytes,
           size_t count) {
    gdcm::DataElement one(gdcm::Tag(group, element));
    one.SetVR(type);
    one.SetByteValue(bytes, gdcm::VL(static_cast<uint32_t>(count)));
    data_.Replace(one);
  }

 private:
  gdcm::DataSet& data_;
};

void put_identity(Elements& put, const DicomSeriesNames& names, int slice) {
  using gdcm::VR;
  put.text(0x0008, 0x0008, VR::CS, "DERIVED\\PRIMARY\\OTHER");  // ImageType
  put.text(0x0008, 0x0016, VR::UI, kMrImageStorage);
  put.text(0x0008, 0x0018, VR::UI, dicom_uid(names.series_uid + " " + std::to_string(slice)));
  put.text(0x0008, 0x0020, VR::DA, "");    // StudyDate
  put.text(0x0008, 0x0030, VR::TM, "");    // StudyTime
  put.text(0x0008, 0x0050, VR::SH, "");    // AccessionNumber
  put.text(0x0008, 0x0060, VR::CS, "MR");  // Modality
  put.text(0x0008, 0x0070, VR::LO, "Larch");
  put.text(0x0008, 0x0090, VR::PN, "");  // ReferringPhysicianName
  put.text(0x0008, 0x103e, VR::LO, names.description);
  put.text(0x0010, 0x0010, VR::PN, names.patient_name);
  put.text(0x0010, 0x0020, VR::LO, names.patient_id);
  put.text(0x0010, 0x0030, VR::DA, "");      // PatientBirthDate
  put.text(0x0010, 0x0040, VR::CS, "");      // PatientSex
  put.text(0x0018, 0x0020, VR::CS, "RM");    // ScanningSequence: research mode
  put.text(0x0018, 0x0021, VR::CS, "NONE");  // SequenceVariant
  put.text(0x0018, 0x0022, VR::CS, "");      // ScanOptions
  put.text(0x0018, 0x0023, VR::CS, "3D");    // MRAcquisitionType
  put.text(0x0018, 0x0081, VR::DS, "");      // EchoTime
  put.text(0x0018, 0x0091, VR::IS, "");      // EchoTrainLength
  put.text(0x0018, 0x5100, VR::CS, "HFS");   // PatientPosition
  put.text(0x0020, 0x000d, VR::UI, names.study_uid);
  put.text(0x0020, 0x000e, VR::UI, names.series_uid);
  put.text(0x0020, 0x0010, VR::SH, "1");  // StudyID
  put.text(0x0020, 0x0011, VR::IS, "1");  // SeriesNumber
  put.text(0x0020, 0x0013, VR::IS, std::to_string(slice + 1));
  put.text(0x0020, 0x0052, VR::UI, names.reference_frame_uid);
  put.text(0x0020, 0x1040, VR::LO, "");  // PositionReferenceIndicator
}

void put_geometry(Elements& put, const Grid& grid, int slice) {
  using gdcm::VR;
  const Vec3d row = grid.direction.column(0), column = grid.direction.column(1);
  const Vec3d position = world_from_index(grid, {0, 0, static_cast<double>(slice)});
  put.text(0x0018, 0x0050, VR::DS, decimal(grid.spacing_mm.z));  // SliceThickness
  if (grid.size.z > 1) put.text(0x0018, 0x0088, VR::DS, decimal(grid.spacing_mm.z));
  put.text(0x0020, 0x0032, VR::DS, decimals(std::array{position.x, position.y, position.z}));
  put.text(0x0020, 0x0037, VR::DS,
           decimals(std::array{row.x, row.y, row.z, column.x, column.y, column.z}));
  // PixelSpacing is between rows, then between columns.
  put.text(0x0028, 0x0030, VR::DS, decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
}

void put_pixels(Elements& put, const Volume<int16_t>& volume, int slice) {
  const Vec3i& size = volume.size();
  put.number(0x0028, 0x0002, 1);  // SamplesPerPixel
  put.text(0x0028, 0x0004, gdcm::VR::CS, "MONOCHROME2");
  put.number(0x0028, 0x0010, static_cast<uint16_t>(size.y));
  put.number(0x0028, 0x0011, static_cast<uint16_t>(size.x));
  put.number(0x0028, 0x0100, 16);  // BitsAllocated, BitsStored, HighBit
  put.number(0x0028, 0x0101, 16);
  put.number(0x0028, 0x0102, 15);
  put.number(0x0028, 0x0103, 1);  // with sign
  const int64_t count = int64_t{size.x} * size.y;
  std::vector<char> bytes;
  bytes.reserve(static_cast<size_t>(2 * count));
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<uint16_t>(volume[count * slice + i]);
    bytes.push_back(static_cast<char>(value & 0xff));
    bytes.push_back(static_cast<char>(value >> 8));
  }
  put.put(0x7fe0, 0x0010, gdcm::VR::OW, bytes.data(), bytes.size());
}

}  // namespace

std::string dicom_uid(std::string_view text) {
  Sha256 sha;
  sha.update(text.data(), text.size());
  const auto digest = sha.digest();
  // 1 and 36 decimal digits: below 2^128, as the integers of UUIDs are.
  std::string uid = "2.25.1";
  for (size_t half = 0; half < 2; ++half) {
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | digest[8 * half + i];
    std::array<char, 24> digits;
    std::snprintf(digits.data(), digits.size(), "%018llu",
                  static_cast<unsigned long long>(bits % 1'000'000'000'000'000'000ULL));
    uid += digits.data();
  }
  return uid;
}

void write_dicom_slice(const std::string& path, const Volume<int16_t>& volume, int slice,
                       const DicomSeriesNames& names) {
  const Grid& grid = volume.grid();
  const Vec3d normal = cross(grid.direction.column(0), grid.direction.column(1));
  if (norm(normal - grid.direction.column(2)) > 1e-6) {
    throw UsageError("'" + path +
                     "': DICOM holds voxel grids with a right-handed, orthogonal direction; write "
                     "NIfTI, NRRD or MetaImage");
  }
  if (grid.size.x > 65535 || grid.size.y > 65535) {
    throw UsageError("'" + path + "': DICOM holds at most 65535 rows and columns, this is " +
                     describe(grid));
  }
  gdcm::Writer writer;
  Elements put(writer.GetFile().GetDataSet());
  put_identity(put, names, slice);
  put_geometry(put, grid, slice);
  put_pixels(put, volume, slice);
  writer.GetFile().GetHeader().SetDataSetTransferSyntax(
      gdcm::TransferSyntax::ExplicitVRLittleEndian);
  std::ostringstream bytes;
  writer.SetStream(bytes);
  if (!writer.Write()) throw OutputError("cannot write '" + path + "' as DICOM");
  write_file(path, bytes.str());
}

}  // namespace larch
