// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/xa/angiogram.h"

namespace larch::io {

/// Reads the Mask Subtraction Sequence (PS3.3, C.7.6.10) of a file of `about.frames` frames into
/// `about.masks`, and what contradicts the file into `about.mask_problem`: an operation that is
/// unknown, AVG_SUB without mask frames, frames that the file does not have, ranges that are no
/// pairs or run backwards, REV_TID without a range, an offset of 0. Items of the operation NONE
/// hold nothing that is looked at. Throws nothing for what the items hold: a user may name the mask
/// frames instead.
void read_mask_items(const DicomDataset& data, Angiogram& about);

}  // namespace larch::io
