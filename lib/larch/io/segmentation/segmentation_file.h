// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/io/dicom/dicom_derived.h"
#include "larch/io/formats/read_options.h"

// Label maps as DICOM segmentations (PS3.3, A.51) of the series that they were made from.
namespace larch {

/// Families of algorithms (PS3.16, CID 7162).
inline const Code kLearned{"DCM", "123110", "Artificial Intelligence"};
inline const Code kDeformable{"DCM", "123111", "Deformable Models"};

/// The program that makes a segmentation.
struct SegmentationMaker {
  std::string program, version;  ///< "pbt-detect", "0.1.0"
  Code family = kLearned;
};

/// Returns the names of the DICOM files of an image that is read with these options; nothing if it
/// is not DICOM. `is_sequence`: it is read as frames. Throws InputError.
std::optional<io::DicomSeries> dicom_names(const std::string& image, const ReadOptions& read,
                                           bool is_sequence);

/// Throws UsageError unless a segmentation of this image can be written to `path`: it is DICOM, and
/// its slices have places in space.
void require_segmentation_source(const std::string& path, const std::string& image,
                                 const ReadOptions& read);

/// Writes labels on the grid of an image as a segmentation of it: BINARY, one segment for each row
/// of `table`, numbered from 1, with frames in the slices where it is, each in the plane of the
/// slice's own file, which it names. What has no row in the table is background. A map without any
/// voxel has one empty frame, since a file has at least one. Readers of Larch give each segment the
/// value of its row again. Frames are written one after another. Throws as
/// require_segmentation_source does, InputError if the labels are not on the grid of the image, and
/// UsageError for more than 65535 structures or 2 GiB of pixels.
void write_segmentation(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                        const std::string& image, const ReadOptions& read,
                        const SegmentationMaker& maker);

}  // namespace larch
