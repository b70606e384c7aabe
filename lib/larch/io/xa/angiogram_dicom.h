// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/xa/angiogram.h"

namespace larch::io {

/// What a DICOM file says of the sequence that it holds. `object`: by describe_dicom. Throws
/// InputError: no pixels, what read_dicom refuses, frames at places of their own (a volume),
/// colours, other samples than of 8 or 16 bits, times that are broken. A shutter that is broken is
/// a warning: without it more pixels count.
Angiogram describe_angiogram(const DicomFile& file, const DicomObject& object);

}  // namespace larch::io
