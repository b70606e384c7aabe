// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/dicom/dicom_file.h"

namespace larch::io {

/// From stored numbers to values: RescaleSlope and RescaleIntercept, or DoseGridScaling, of a data
/// set that may hold them; what is absent stays as it was in `plane`. Throws InputError for numbers
/// that are broken, for a slope of 0, and for one of a pair without the other.
void take_rescale(const DicomDataset& data, DicomPlane& plane, const std::string& path);

/// The Modality LUT Sequence (PS3.3, C.11.1); without entries if the file has none. `is_signed`
/// is the PixelRepresentation, which the first stored value goes by. Throws InputError for a table
/// that is incomplete, or not of 8 to 16 bits.
DicomLut read_modality_lut(const DicomDataset& data, bool is_signed, const std::string& path);

}  // namespace larch::io
