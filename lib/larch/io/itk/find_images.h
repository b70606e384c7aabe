// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace larch {

/// An image below a folder.
struct FoundImage {
  std::string path;          ///< of the file, or of the folder with the files of a series
  std::string series_uid{};  ///< of the series in the folder
  /// The files of the series, where its folder holds anything else.
  std::vector<std::string> files{};
};

/// The images below a folder, and what is none.
struct FoundImages {
  std::vector<FoundImage> images{};        ///< in the order of their paths, then of their series
  std::vector<std::string> passed_over{};  ///< files that are no images, folders not searched
};

/// Finds the images of a folder at any depth: files with the ending of an image, DICOM files of
/// several frames, and series of DICOM files of one frame in one folder; with `files_alone` each
/// DICOM file is an image. DICOM segmentations and what begins with a dot are no images. Folders
/// below are not searched if they are called labels, labelsTr, labelsTs or segmentations, or hold
/// records of results. Links are followed, to each folder once.
///
/// A DICOM file that is damaged is an image by itself, whose reading says what is wrong; beside a
/// series it is not, since the reading of the series says it. Throws InputError for a folder that
/// cannot be read.
FoundImages find_images(const std::string& folder, bool files_alone);

/// Tells whether a file has the ending of a format for volumes.
bool is_named_as_volume(const std::string& path);

}  // namespace larch
