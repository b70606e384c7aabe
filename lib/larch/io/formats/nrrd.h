// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/image/raw_image.h"

namespace larch::io {

/// NRRD, by its definition (teem.sourceforge.net/nrrd/format.html). ITK's reader, NrrdIO, is not
/// used: it copies words of the header into arrays of fixed length, in its messages about what is
/// wrong most of all, so that a long word in any line overflows its stack; and it gives up its
/// memory when a file is damaged.

enum class NrrdEncoding { kRaw, kText, kHex, kGzip };

/// The header of a .nrrd or .nhdr file, in LPS mm. Positions in the spaces RAS and LAS are turned;
/// other spaces are taken for LPS, as by ITK.
struct NrrdHeader {
  Header header{};
  int frames = 1;              ///< product of the axes of time, and of space beyond the third
  int64_t values_between = 1;  ///< voxels between the channels of a pixel; 1: they are interleaved
  NrrdEncoding encoding = NrrdEncoding::kRaw;
  bool swapped = false;             ///< other byte order than this machine's
  std::vector<std::string> data{};  ///< files with equal shares of the values, in order
  int64_t data_offset = 0;          ///< where the header ends, if the data stand in the same file
  int64_t line_skip = 0;            ///< lines before the data of each file
  int64_t byte_skip = 0;            ///< bytes after them, uncompressed; -1: the data end the file
};

/// Throws InputError for anything that is not a sound header: fields that are unknown, twice there
/// or of another length than the dimension asks for; numbers that are none; axes without a position
/// beside axes that have one. Frames and channels may be more than 1.
NrrdHeader read_nrrd_header(const std::string& path);

/// The most bytes of voxels that the data files can hold.
int64_t most_bytes(const NrrdHeader& nrrd);

/// Where the values of a file begin.
struct NrrdStart {
  int64_t byte = 0;     ///< of the file
  int64_t skipped = 0;  ///< bytes of the inflated data before them
};

/// Of the first data file, which holds `bytes` of values, raw or compressed. Throws InputError if
/// raw ones are not there.
NrrdStart start_of_values(const NrrdHeader& nrrd, int64_t bytes);

/// Header and voxels of one frame, or of all. Throws InputError, MemoryError.
RawImage read_nrrd(const std::string& path, const Selection& selection);

}  // namespace larch::io
