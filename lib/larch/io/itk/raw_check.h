// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace larch::io {

// What stands before ITK's readers of formats that are a header and raw voxels. They take what the
// header claims, and some of them truncated data for complete. Each check throws InputError for a
// header that ITK's reader could not bear, or would read as something else than it says.

/// What a check found.
struct RawCheck {
  /// The most bytes that the voxels can take, which the caller compares with the size in the header
  /// before memory is allocated.
  int64_t most_bytes = 0;
  /// Of a single slice whose reader gives two axes alone.
  std::optional<double> third_spacing_mm{}, third_origin_mm{};
};

/// GIPL (Guy's Image Processing Lab), also compressed with gzip, whose stream is read to its end.
/// Of more than 2 GiB of compressed or 2^32 other voxels the reader gives zeros or other numbers
/// without a word, so that they are an error.
RawCheck check_gipl(const std::string& path);

/// MRC (electron microscopy), whose extended header must lie in the file. The reader looks at
/// neither the order of the axes, nor their angles, nor where the first voxel lies in a larger
/// grid, takes signed bytes for unsigned ones, and turns the bytes of an extended header of FEI
/// beyond its end: all but the usual values are an error.
RawCheck check_mrc(const std::string& path);

/// BioRad PIC (confocal microscopy).
RawCheck check_bio_rad(const std::string& path);

/// Why files with this ending are refused though ITK has a reader; empty for others.
std::string why_refused(const std::string& path);

}  // namespace larch::io
