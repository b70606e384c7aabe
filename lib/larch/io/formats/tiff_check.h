// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace larch::io {

/// Checks the directories of a TIFF or BigTIFF file before libtiff and ITK see it, and returns the
/// most bytes of voxels that its pages can have together. They follow directories that name each
/// other without end, and allocate what a header claims: tables for as many strips as the claimed
/// height needs, whatever is in the file.
///
/// Throws InputError: no TIFF; a directory or a value beyond the end of the file; directories in a
/// ring, or more than kMostTiffPages; directories and tables that share bytes until they are many
/// times the file; a size of zero; fewer strips or tiles than the size needs; strips beyond the end
/// of the file; more voxels than the compression can make of the bytes that are there; pages of
/// different sizes, of which ITK reads all as if they were the first. Takes time in proportion to
/// the bytes of the file, and memory of one directory.
int64_t check_tiff(const std::string& path);

constexpr int kMostTiffPages = 65535;  ///< as libtiff counts them

}  // namespace larch::io
