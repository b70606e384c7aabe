// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/xa/angiogram.h"

namespace larch::io {

/// The elements that a sequence shares with the one that it is derived from: patient, study,
/// acquisition, positioner, collimator, calibration. Texts alone; what is private, empty, of
/// another type than PS3.6 says or longer than an element with a short length stays behind, and so
/// do series, instance, frames and pixels, which are the derived file's own.
std::vector<CopiedElement> copied_elements(const DicomDataset& data);

/// What says which device made a file, Manufacturer first, in the same way.
std::vector<CopiedElement> equipment_elements(const DicomDataset& data);

}  // namespace larch::io
