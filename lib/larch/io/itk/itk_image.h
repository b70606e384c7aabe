// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/io/image/raw_image.h"

namespace larch::io {

/// TIFF, which is read by ITK (and libtiff). Its pictures have a spacing of 1 mm and
/// the identity direction: their resolution tags say how to print them. Several pages make a
/// volume. check_tiff comes first. Throws InputError, read_tiff MemoryError as well.
Header probe_tiff(const std::string& path);
RawImage read_tiff(const std::string& path);

/// Formats that nobody but ITK reads here: VTK (legacy images), GIPL, MRC, BioRad. A check of
/// raw_check.h or vtk_check.h comes first; a warning of the header names the reader. Positions are
/// LPS mm, as ITK takes them. Throws InputError, read_by_itk MemoryError as well.
Header probe_by_itk(const std::string& path, int& frames);
RawImage read_by_itk(const std::string& path, const Selection& selection);

/// Writes a 2-D TIFF of one component, deflated, and reads it back to be sure. Not atomic.
/// Throws OutputError.
void write_tiff(const std::string& path, const Grid& grid, Component component, const void* voxels);

}  // namespace larch::io
