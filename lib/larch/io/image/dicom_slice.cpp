// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/dicom_slice.h"

#include <array>

#include "larch/core/error.h"
#include "larch/io/itk/door.h"

namespace larch {
namespace {

using io::decimal, io::decimals, io::DicomWriter;

void put_identity(DicomWriter& out, const DicomSeriesNames& names, int slice) {
  out.text(0x0008'0008, "CS", "DERIVED\\PRIMARY\\OTHER");    // ImageType
  out.text(0x0008'0016, "UI", "1.2.840.10008.5.1.4.1.1.4");  // MR image storage
  out.text(0x0008'0018, "UI", dicom_uid(names.series_uid + " " + std::to_string(slice)));
  out.text(0x0008'0020, "DA", "");    // StudyDate
  out.text(0x0008'0030, "TM", "");    // StudyTime
  out.text(0x0008'0050, "SH", "");    // AccessionNumber
  out.text(0x0008'0060, "CS", "MR");  // Modality
  out.text(0x0008'0070, "LO", "Larch");
  out.text(0x0008'0090, "PN", "");  // ReferringPhysicianName
  out.text(0x0008'103e, "LO", names.description);
  out.text(0x0010'0010, "PN", names.patient_name);
  out.text(0x0010'0020, "LO", names.patient_id);
  out.text(0x0010'0030, "DA", "");      // PatientBirthDate
  out.text(0x0010'0040, "CS", "");      // PatientSex
  out.text(0x0018'0020, "CS", "RM");    // ScanningSequence: research mode
  out.text(0x0018'0021, "CS", "NONE");  // SequenceVariant
  out.text(0x0018'0022, "CS", "");      // ScanOptions
  out.text(0x0018'0023, "CS", "3D");    // MRAcquisitionType
  out.text(0x0018'0081, "DS", "");      // EchoTime
  out.text(0x0018'0091, "IS", "");      // EchoTrainLength
  out.text(0x0018'5100, "CS", "HFS");   // PatientPosition
  out.text(0x0020'000d, "UI", names.study_uid);
  out.text(0x0020'000e, "UI", names.series_uid);
  out.text(0x0020'0010, "SH", "1");  // StudyID
  out.text(0x0020'0011, "IS", "1");  // SeriesNumber
  out.text(0x0020'0013, "IS", std::to_string(slice + 1));
  out.text(0x0020'0052, "UI", names.reference_frame_uid);
  out.text(0x0020'1040, "LO", "");  // PositionReferenceIndicator
}

void put_geometry(DicomWriter& out, const Grid& grid, int slice) {
  const Vec3d row = grid.direction.column(0), column = grid.direction.column(1);
  const Vec3d position = world_from_index(grid, {0, 0, static_cast<double>(slice)});
  out.text(0x0018'0050, "DS", decimal(grid.spacing_mm.z));  // SliceThickness
  if (grid.size.z > 1) out.text(0x0018'0088, "DS", decimal(grid.spacing_mm.z));
  out.text(0x0020'0032, "DS", decimals(std::array{position.x, position.y, position.z}));
  out.text(0x0020'0037, "DS",
           decimals(std::array{row.x, row.y, row.z, column.x, column.y, column.z}));
  // PixelSpacing is between rows, then between columns.
  out.text(0x0028'0030, "DS", decimals(std::array{grid.spacing_mm.y, grid.spacing_mm.x}));
}

}  // namespace

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
  DicomWriter out;
  put_identity(out, names, slice);
  put_geometry(out, grid, slice);
  out.number(0x0028'0002, 1);  // SamplesPerPixel
  out.text(0x0028'0004, "CS", "MONOCHROME2");
  out.number(0x0028'0010, static_cast<uint16_t>(grid.size.y));
  out.number(0x0028'0011, static_cast<uint16_t>(grid.size.x));
  out.number(0x0028'0100, 16);  // BitsAllocated, BitsStored, HighBit
  out.number(0x0028'0101, 16);
  out.number(0x0028'0102, 15);
  out.number(0x0028'0103, 1);  // with sign
  io::Pixels pixels{grid, io::Component::kInt16};
  pixels.grid.size.z = 1;
  pixels.voxels = volume.data() + pixels.grid.voxels() * slice;
  pixels.head =
      out.file() + io::dicom_element_head(0x7fe0'0010, "OW", static_cast<uint32_t>(pixels.bytes()));
  io::write_image(path, pixels);
}

}  // namespace larch
