// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/itk/raw_check.h"

namespace larch::io {

/// What stands before ITK's reader of VTK's legacy images ("# vtk DataFile", STRUCTURED_POINTS).
/// That reader looks for its keywords anywhere in a line, the name of an array included, takes
/// numbers that are not there from memory nobody wrote, copies words into arrays of fixed length
/// and does not notice the end of a text. So a header is let through only if each of its lines is
/// understood here, and in one way: BINARY, DIMENSIONS, SPACING or ASPECT_RATIO, ORIGIN, POINT_DATA
/// of as many points, and then SCALARS with a LOOKUP_TABLE, COLOR_SCALARS or VECTORS. Throws
/// InputError.
RawCheck check_vtk(const std::string& path);

}  // namespace larch::io
