// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/image.h"
#include "larch/io/raw_image.h"

namespace larch::io {

/// One image plane: a file of a series, or a frame of a multi-frame object.
struct DicomPlane {
  std::string name;  ///< for messages: the file, or "the file, frame 3"
  int object = 0;    ///< which of the files
  int frame = 0;     ///< which frame of it
  Vec3i size{0, 0, 1};
  bool has_position = false, has_orientation = false;
  Vec3d position_mm{};
  Vec3d row{1, 0, 0}, column{0, 1, 0};  ///< directions of increasing column and row number
  double spacing_x_mm = 1, spacing_y_mm = 1, thickness_mm = 1;
  double slope = 1, intercept = 0;
};

/// The header of one file.
struct DicomObject {
  std::string path, kind, series_uid, modality, description;
  int frames = 1, channels = 1;
  bool has_pixels = false;  ///< it has rows and columns
  Component component = Component::kUint16;
  std::vector<DicomPlane> planes;
};

/// The voxels of one file.
struct DicomPixels {
  Component component = Component::kUint16;
  int channels = 1;
  std::vector<std::byte> bytes;  ///< frame after frame, channels interleaved
};

/// Reads the header. Throws InputError if it is not DICOM or damaged.
DicomObject read_dicom_object(const std::string& path);

/// Decodes the pixels of `object`, all frames. Throws InputError: no pixels (the message says what
/// the file is), truncated, compressed in a way that is not supported.
DicomPixels read_dicom_pixels(const DicomObject& object);

/// Puts the planes in order along their normal and returns the grid that they fill; throws
/// InputError as read_dicom says.
Grid arrange_planes(std::vector<DicomPlane>& planes, const std::string& path);

/// read_dicom before the conversion to a type.
RawImage read_dicom_raw(const std::string& path, const ReadOptions& options);
Header probe_dicom(const std::string& path, const ReadOptions& options);

}  // namespace larch::io
