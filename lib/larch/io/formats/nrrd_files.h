// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace larch::io {

/// The files that the field "data file" of the NRRD header `path` names, in order: by its `value`
/// one name, a pattern with a range of numbers, or LIST, for which the names are `lines`. Throws
/// InputError: none or more than 100000, a name with control characters, a
/// file twice, by whatever names, a file that is missing or the header itself.
std::vector<std::string> nrrd_data_files(const std::string& path, const std::string& value,
                                         const std::vector<std::string>& lines);

}  // namespace larch::io
