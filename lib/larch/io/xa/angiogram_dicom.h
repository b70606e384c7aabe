// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "larch/io/dicom/dicom_derived.h"
#include "larch/io/dicom/dicom_object.h"
#include "larch/io/dicom/dicom_parser.h"
#include "larch/io/formats/image_file.h"
#include "larch/io/xa/angiogram.h"

namespace larch::io {

/// The words of the elements MaskOperation and PixelIntensityRelationship, in the order of their
/// types.
inline constexpr std::array kMaskOperations{"NONE", "AVG_SUB", "TID", "REV_TID"};
inline constexpr std::array kPixelIntensities{"", "LIN", "LOG", "DISP"};

/// Returns what the DICOM file says of an image that is open as a sequence; nothing if it is not
/// DICOM. Throws InputError: no pixels, what read_dicom refuses, frames at places of their own (a
/// volume), colours, other samples than of 8 or 16 bits, times that are broken. A shutter that is
/// broken is a warning: without it more pixels count.
std::optional<Angiogram> describe_angiogram(const ImageFile& image);

/// Reads the Mask Subtraction Sequence (PS3.3, C.7.6.10) of a file of `about.frames` frames into
/// `about.masks`, and what contradicts the file into `about.mask_problem`: an operation that is
/// unknown, AVG_SUB without mask frames, frames that the file does not have, ranges that are no
/// pairs or run backwards, REV_TID without a range, an offset of 0. Items of the operation NONE
/// hold nothing that is looked at. Throws nothing for what the items hold: a user may name the mask
/// frames instead.
void read_mask_items(const DicomDataset& data, Angiogram& about);

/// Returns the elements that a sequence shares with the one that it is derived from: patient,
/// study, acquisition, positioner, collimator, calibration.
std::vector<CopiedElement> copied_elements(const DicomDataset& data);

}  // namespace larch::io
