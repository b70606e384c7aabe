// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace larch::io {

// What stands before ITK's readers of formats that are a header and raw voxels. They take what the
// header claims, and some of them truncated data for complete. Each check returns the most bytes
// that the voxels can take, which the caller compares with the size in the header before memory is
// allocated, and throws InputError for a header that ITK's reader could not bear.

/// VTK's legacy images ("# vtk DataFile", STRUCTURED_POINTS). Lines of the header that are longer
/// than 200 characters, which the reader would copy into arrays of fixed length, are an error, and
/// so are voxels that are stored as text, of which it does not notice the end.
int64_t check_vtk(const std::string& path);

/// GIPL (Guy's Image Processing Lab), also compressed with gzip, whose stream is read to its end.
int64_t check_gipl(const std::string& path);

/// MRC (electron microscopy), whose extended header must lie in the file.
int64_t check_mrc(const std::string& path);

/// BioRad PIC (confocal microscopy).
int64_t check_bio_rad(const std::string& path);

/// Why files with this ending are refused though ITK has a reader; empty for others.
std::string why_refused(const std::string& path);

}  // namespace larch::io
