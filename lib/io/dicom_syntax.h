// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace larch::io {

/// Walks all elements of a DICOM file (PS3.5, PS3.10) and checks that tags, lengths, sequences and
/// fragments fit into each other and into the file, and that compressed images are of the size that
/// the header says. GDCM asserts where that is not so, which ends the process, and fills up what
/// is missing with zeros. Throws InputError.
void check_dicom_structure(const std::string& path);

}  // namespace larch::io
