// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/data/volume.h"
#include "larch/io/dicom/dicom_writer.h"

namespace larch {

/// What the files of a series have in common.
struct DicomSeriesNames {
  std::string patient_name, patient_id;  ///< patient_name: "Family^Given"
  std::string description;               ///< SeriesDescription
  std::string study_uid, series_uid;
  std::string reference_frame_uid;  ///< FrameOfReferenceUID
};

/// Writes slice `slice` (the index along z) of `volume` as one file of an MR series: MR Image
/// Storage, explicit little endian, 16 bits with sign, without rescaling. The positions keep the
/// geometry of the grid to 1e-8 mm. The same slice gives the same bytes: dates and times are empty.
///
/// A reader sorts slices along the normal of the image plane; a series therefore holds a grid with
/// a right-handed direction. Throws UsageError for a left-handed or sheared one and for more than
/// 65535 rows or columns, OutputError if the file cannot be written.
void write_dicom_slice(const std::string& path, const Volume<int16_t>& volume, int slice,
                       const DicomSeriesNames& names);

}  // namespace larch
