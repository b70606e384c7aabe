// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_write.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <vector>

#include <gdcmWriter.h>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_put.h"

namespace larch {
namespace {

using io::decimal;
using io::decimals;
using io::DicomPut;

constexpr const char* kMrImageStorage = "1.2.840.10008.5.1.4.1.1.4";

void put_identity(DicomPut& put, const DicomSeriesNames& names, int slice) {
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

void put_geometry(DicomPut& put, const Grid& grid, int slice) {
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

void put_pixels(DicomPut& put, const Volume<int16_t>& volume, int slice) {
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
  std::vector<uint16_t> stored;
  stored.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    stored.push_back(static_cast<uint16_t>(volume[count * slice + i]));
  }
  put.numbers(0x7fe0, 0x0010, gdcm::VR::OW, stored);
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
  DicomPut put(writer.GetFile().GetDataSet());
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
