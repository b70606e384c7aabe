// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace larch {

/// All bytes of a file. Throws InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Puts `bytes` under `path`, whole or not at all: written to a temporary name in the same folder,
/// flushed to disk, renamed. Throws OutputError (folder missing, not writable, disk full).
void write_file(const std::string& path, std::string_view bytes);

/// Calls write(temporary_path), where the temporary path lies in the folder of `path` and has the
/// same ending, then renames it to `path`. Removes it if `write` throws. For writers that want a
/// path. Throws OutputError as write_file does.
void write_through_temporary(const std::string& path,
                             const std::function<void(const std::string& temporary_path)>& write);

/// The ending that formats go by, in lower case: ".nii.gz", ".mha", "" if there is none. Names that
/// end in .gz have both parts.
std::string file_extension(const std::string& path);

}  // namespace larch
