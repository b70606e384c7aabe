// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace larch {

/// Returns all bytes of a file, or its first ones. Throws InputError if it is missing, a folder or
/// unreadable.
std::string read_file(const std::string& path, size_t most = SIZE_MAX);

/// Throws InputError, which says how to get the file, if its first bytes are those of what stands
/// in its place: a pointer of Git LFS or git-annex, an HTML page, or nothing at all. kBeginning
/// bytes suffice.
void refuse_placeholder(const std::string& path, std::string_view first_bytes);
constexpr size_t kBeginning = 1024;

/// Returns the text of a regular file that nobody vouches for. None if it is missing, is no regular
/// file (a pipe is not waited for), cannot be read or has more bytes than `most`.
std::optional<std::string> read_untrusted(const std::string& path, size_t most);

/// Tells whether there is a folder or a regular file of that name. Never throws: a name that is too
/// long, goes round in links or lies in a closed folder is neither.
bool is_folder(const std::string& path) noexcept;
bool is_file(const std::string& path) noexcept;

/// "does not exist", that it is a link to nothing, or why the system cannot look at the name
/// ("cannot be read: File name too long"); empty if something is there.
std::string why_missing(const std::string& path);

/// Size of a regular file. Throws InputError that names what is none.
int64_t file_bytes(const std::string& path);

/// Holds what the system notes of a file; it differs after every change of the file.
struct FileStamp {
  int64_t bytes = 0, modified_ns = 0, changed_ns = 0;
  uint64_t inode = 0, device = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
/// Nothing of what is no regular file, and of a file that was changed within the last two seconds:
/// another change may leave it the same time then.
std::optional<FileStamp> settled_stamp(const std::string& path);

/// Returns the files of a folder, without those of folders below, sorted; links that lead nowhere
/// are among them. Throws InputError that names a folder that cannot be read.
std::vector<std::string> files_in(const std::string& folder);

/// Puts `bytes` under `path`, whole or not at all (write_atomically). Throws OutputError.
void write_file(const std::string& path, std::string_view bytes);

/// Returns the ending that formats go by, in lower case: ".nii.gz", ".mha", "" if there is none.
/// Names that end in .gz have both parts, and so has .seg.nrrd.
std::string file_extension(const std::string& path);

}  // namespace larch
