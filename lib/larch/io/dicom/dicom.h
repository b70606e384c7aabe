// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/image/image.h"

namespace larch {

/// One series of a folder.
struct DicomSeries {
  std::string uid;          ///< SeriesInstanceUID
  std::string modality;     ///< "CT", "MR", ...
  std::string description;  ///< SeriesDescription, may be empty
  int files = 0;
};

/// The series with images in a folder (not its subfolders), ordered by UID. Files that are not
/// DICOM are passed over. Throws InputError if the folder cannot be read.
std::vector<DicomSeries> list_dicom_series(const std::string& folder);

/// True if `path` is a folder or a file that starts as DICOM files do (with or without preamble).
bool is_dicom(const std::string& path);

/// Voxels after rescaling, in the geometry of the series. options.nan_value does not apply. The
/// whole list of what is checked is the table in apps/reading-images.md.
///
/// A folder: its images are grouped by SeriesInstanceUID; more than one series is an error that
/// lists them, unless options.series_uid chooses. Slices are sorted by their position along the
/// normal of the image plane. Errors that name the files: two slices at one position, positions
/// that are off the regular line by more than 5 % of the slice distance (and 0.01 mm), that are a
/// multiple of SpacingBetweenSlices apart or, for two slices, anything but that (Allow),
/// orientations, matrix sizes or pixel spacings that differ, two patients, studies or frames of
/// reference (Allow). The third axis is the step between slice positions, so that the tilt of a
/// gantry is kept as a non-orthogonal direction; a step within 0.001 rad of the normal counts as
/// not tilted. Files without pixels (reports, structure sets, DICOMDIR) are passed over in a folder
/// when images are there too; a damaged DICOM file is an error, because a slice could be missing
/// otherwise.
///
/// A file: one slice, or a multi-frame or enhanced object with the positions, spacings and
/// rescaling of its functional groups. Several frames at one position (stacks, time points,
/// echoes) are an error that says how many. A single slice has SliceThickness (or 1 mm) as third
/// spacing and, without a position, the identity geometry. Of several frames without positions, or
/// all at one (a cine), options.frame chooses the picture that is read; without it they are an
/// error, as are a Siemens mosaic, and an image without PixelSpacing or ImagerPixelSpacing (Allow).
///
/// Values: the stored bits with their sign, then RescaleSlope and RescaleIntercept, the Modality
/// LUT, or the scaling of a dose grid; a number among these, or of the geometry, that is present
/// and broken is an error. RGB pixels become luminance as in read_volume; palette and YBR pixels
/// are an error. MONOCHROME1 is not inverted. Transfer syntaxes: native, big endian, deflated, RLE,
/// JPEG baseline, extended and lossless, JPEG-LS, JPEG 2000. Throws InputError; a file without
/// pixels is named for what it is.
Volume<float> read_dicom(const std::string& path, const ReadOptions& options = {});

}  // namespace larch
