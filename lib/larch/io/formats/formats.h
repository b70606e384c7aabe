// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include "larch/io/image/raw_image.h"

namespace larch::io {

/// Reads a PNG file without its alpha. Grey of fewer than 8 bits is stretched to 0..255 unless
/// indices are kept. Throws InputError. The header alone: probe_png.
RawImage read_png(const std::string& path, Palette palette);
Header probe_png(const std::string& path);

/// What a writer gets: grid.voxels() values, or vectors of `channels` values, of `component`.
struct Pixels {
  const Grid& grid;
  Component component;
  const void* voxels;
  bool labels;                ///< for formats that can say so
  int threads = 1;            ///< that compress .nii.gz
  int channels = 1;           ///< more than 1: vectors, whose components stand side by side
  std::string description{};  ///< for the header, one line; may be empty
};

/// Whether a path is read as DICOM: a folder, or a file of no known ending that starts so.
bool goes_to_dicom(const std::string& path);

/// Reads what is selected of a file that is not DICOM, by its ending, and gives its warnings.
RawImage read_selected(const std::string& path, const ReadOptions& options,
                       const Selection& selection);

/// Writers of image files, all atomic. Throw OutputError and UsageError as write_volume does.
void write_nrrd(const std::string& path, const Pixels& pixels);      ///< gzip, space LPS
void write_meta(const std::string& path, const Pixels& pixels);      ///< .mha, zlib
void write_grey_png(const std::string& path, const Pixels& pixels);  ///< uint8 and uint16

/// Headers of .nrrd files, and of .mha files: of raw voxels if `deflated_bytes` are 0.
std::string nrrd_header(const Pixels& pixels, const char* encoding);
std::string meta_header(const Pixels& pixels, size_t deflated_bytes);

/// Writes by the ending of `path`.
void write_pixels(const std::string& path, const Pixels& pixels);

/// Throws UsageError unless the volume is 2-D.
void require_one_slice(const std::string& path, const Vec3i& size);

/// Throws UsageError unless the volume is 2-D and its type one of `allowed`.
void require_picture(const std::string& path, const Pixels& pixels,
                     std::initializer_list<Component> allowed);

}  // namespace larch::io
