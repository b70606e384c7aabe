// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/io/dicom/dicom_derived.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/segmentation/segmentation_file.h"

namespace larch::io {

/// The mask of one structure in one slice.
struct SegmentFrame {
  size_t segment = 0;  ///< row of the table
  int slice = 0;
};

/// Holds what the header of a segmentation file is made of.
struct SegmentationHeader {
  const DicomSeries& series;  ///< the images that were labelled
  const Grid& grid;           ///< of the labels
  const LabelTable& table;
  const SegmentationMaker& maker;
  const std::vector<SegmentFrame>& frames;
};

/// Returns the bytes of a Segmentation Storage instance (PS3.3, A.51) before its masks of one bit:
/// the preamble, the elements and the head of `bytes` of pixel data. `content`: what tells masks
/// from others; it decides the UIDs of instance and series together with all else that is said.
/// Dates are those of the source, so that the same labels give the same bytes. Throws InputError if
/// the first file of the series can no longer be read.
std::string segmentation_head(const SegmentationHeader& header, int64_t bytes,
                              const std::string& content);

}  // namespace larch::io
