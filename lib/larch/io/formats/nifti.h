// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/formats/formats.h"

namespace larch::io {

/// NIfTI-1 and -2, by its definition (nifti1.h, nifti2.h), because the reference reader, which ITK
/// uses, turns NaN into 0 without a word and gives up on sheared transforms.

/// The header of a .nii, .nii.gz, .hdr or .img file, in LPS mm.
struct NiftiHeader {
  Header header{};
  int frames = 1;           ///< product of the dimensions 4 to 7, without those of a vector
  int header_bytes = 0;     ///< 348 for version 1, 540 for version 2
  std::string header_path;  ///< the file itself, or the .hdr beside a .img
  int64_t data_offset = 0;  ///< of the first voxel in data_path
  std::string data_path;    ///< the file itself, or the .img beside a .hdr
  bool swapped = false;     ///< other byte order than this machine's
};

/// Throws InputError for anything that is not a sound header: an extension that reaches into
/// the voxels, a .hdr without its .img. Frames may be above 1.
NiftiHeader read_nifti_header(const std::string& path);
/// Header and voxels of one frame, or of all. Throws InputError, MemoryError.
RawImage read_nifti(const std::string& path, const Selection& selection);

/// What a NIfTI file says about its values.
enum class NiftiIntent { kNone = 0, kLabel = 1002, kDisplacement = 1006, kVector = 1007 };

/// The header of a single file for `pixels`, of which only grid and type are looked at, in `frames`
/// frames, and the bytes up to its voxels. Throws UsageError as write_nifti does.
std::string nifti_header_bytes(const std::string& path, const Pixels& pixels, int64_t frames = 1,
                               const FrameTimes& times = {});

/// Writes header and voxels to `path`, compressed if it ends in .gz. Not atomic. Throws
/// OutputError, or UsageError if an axis is longer than NIfTI-1 allows.
void write_nifti(const std::string& path, const Pixels& pixels);

}  // namespace larch::io
