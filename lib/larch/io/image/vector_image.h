// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/data/vector_field.h"
#include "larch/io/image/image.h"

namespace larch {

/// Reads an image of two or three components per voxel as vectors in LPS mm; of two, the third is
/// 0. NIfTI: five dimensions and the intent "vector" (1007), whose components ITK writes as LPS and
/// reads as they are; the intent "displacement" (1006), about which readers differ, is an error.
/// MetaImage: several channels. NRRD: an axis of kind "vector"; a space other than LPS, or a
/// measurement frame that is not the identity, is an error. Geometry and values are checked as by
/// read_volume; values that are not finite are an error, and options.nan_value does not apply.
/// Throws InputError, MemoryError.
VectorField read_vector_field(const std::string& path, const ReadOptions& options = {});

/// Writes float32 vectors as ITK's vector image; the format goes by the ending: .nii .nii.gz .nrrd
/// .mha. `threads` compress .nii.gz. With `components` 2 only x and y are written. Throws
/// UsageError for other endings, for other numbers of components, and for two of them if a third is
/// not 0; OutputError.
void write_vector_field(const std::string& path, const VectorField& field, int components = 3,
                        int threads = 1);

}  // namespace larch
