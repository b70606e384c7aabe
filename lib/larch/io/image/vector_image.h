// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/data/vector_field.h"
#include "larch/io/image/image.h"

namespace larch {

/// Writes float32 vectors as ITK's vector image; the format goes by the ending: .nii .nii.gz .nrrd
/// .mha. `threads` compress .nii.gz. Throws UsageError for other endings, and OutputError.
void write_vector_field(const std::string& path, const VectorField& field, int threads = 1);

}  // namespace larch
