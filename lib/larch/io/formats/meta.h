// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/image/raw_image.h"

namespace larch::io {

/// MetaImage (.mha, .mhd with one raw or zlib-compressed data file), by its definition: ITK's
/// reader takes truncated data for complete and writes its complaints to the terminal. Positions
/// are LPS mm. Throws InputError.
struct MetaHeader {
  Header header{};
  int frames = 1;           ///< size of the fourth and further dimensions
  int64_t data_offset = 0;  ///< of the first byte of data in data_path; -1: the voxels end the file
  std::string data_path;
  bool swapped = false;
  bool compressed = false;
};

MetaHeader read_meta_header(const std::string& path);
/// Header and voxels of one frame, or of all. Throws MemoryError as well.
RawImage read_meta(const std::string& path, const Selection& selection);

}  // namespace larch::io
