// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace larch::io {

/// Checks of files that others parse afterwards; all throw InputError.

/// The text header of a .mha or .mhd file: number of dimensions 1 to 4, as many sizes, all numbers
/// sound, data file present and not outside what a file can hold. Returns the most bytes of voxels.
int64_t check_meta_text(const std::string& path);

/// The same for .nrrd and .nhdr.
int64_t check_nrrd_text(const std::string& path);

/// PNG, JPEG: the file ends as its format says; others: it is there.
void check_picture(const std::string& path);

}  // namespace larch::io
