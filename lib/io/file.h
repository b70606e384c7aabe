// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace larch {

/// All bytes of a file. Throws InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Puts `bytes` under `path`, whole or not at all (write_atomically). Throws OutputError.
void write_file(const std::string& path, std::string_view bytes);

/// The ending that formats go by, in lower case: ".nii.gz", ".mha", "" if there is none. Names that
/// end in .gz have both parts.
std::string file_extension(const std::string& path);

}  // namespace larch
