// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/io/raw_image.h"

namespace larch::io {

/// Formats that ITK reads.
enum class ItkFormat { kNrrd, kTiff };

/// Header of a file; `frames` gets the size of the fourth dimension. TIFF pictures have
/// a spacing of 1 mm and the identity direction: their resolution tags say how to print them.
/// Throws InputError.
Header read_itk_header(const std::string& path, ItkFormat format, int& frames);

/// Header and voxels; more than one frame is an error. Throws InputError, MemoryError.
RawImage read_itk(const std::string& path, ItkFormat format);

/// The number of threads that set_io_threads, or the environment variable that ITK reads, allows.
int io_threads();

/// Writes a 2-D TIFF of one component, deflated, and reads it back to be sure. Not atomic.
/// Throws OutputError.
void write_tiff(const std::string& path, const Grid& grid, Component component, const void* voxels);

}  // namespace larch::io
