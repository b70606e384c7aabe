// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/image/byte_order.h"
#include "larch/io/image/raw_image.h"

namespace larch::io {

/// ANALYZE 7.5 (dbh.h of the Mayo clinic): a .hdr of 348 bytes, whose sizes, type and spacings
/// stand where NIfTI has them, with the voxels in a .img. It says neither which side is left nor
/// where the image lies.

/// Whether the 348 bytes of `header`, which start with the number 348 and have no sound mark of
/// NIfTI, are of ANALYZE: in a file of a pair, and without the beginning of that mark.
bool is_analyze(const std::string& header_path, const char* header);

/// Throws InputError for what programs read differently: slices that are not axial, negative
/// spacings, scale factors and offsets, units other than mm, colours.
void check_analyze(const std::string& path, const FieldReader& header);

/// Sets the direction to the convention of the format's authors and of SPM, which is radiological:
/// x from right to left, y from back to front, z upwards (LAS), with the first voxel at the origin.
/// ITK does so too if it is told to follow SPM; by default it takes y to run from front to back.
/// Since all of this is a guess, it leaves a doubt in the header.
void set_analyze_geometry(const std::string& path, Header& header);

}  // namespace larch::io
