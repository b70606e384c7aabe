// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/config.h"

namespace larch::detail {

/// By what a file that was written is known again: {"Bytes", "Modified", "Inode", "SHA256"}, the
/// time in nanoseconds since 1970. Reads the file. Throws OutputError.
config::Json content_record(const std::string& path);

/// A file in "Outputs" of a sidecar: {"Name", "Role"} and its content record. `name` is relative to
/// the folder of the sidecar; no `role` (a companion): none is told.
config::Json output_record(const std::string& name, const std::string& role,
                           const config::Json& content);

/// A file that a sidecar names, with what it says of it.
struct NamedFile {
  std::string path;
  config::Json entry;
};

/// The files that "Outputs" of a sidecar in `folder` names; what is no name is left out.
std::vector<NamedFile> named_files(const config::Json& record, const std::string& folder);

/// The one called `path`; null if there is none. Names are compared without their dots.
const NamedFile* find_named(const std::vector<NamedFile>& files, const std::string& path);

/// Why a file that is there is not the one that the run of its sidecar wrote, to follow "it ";
/// empty if it is. It is read only if its size is that of then, and its time or inode is not.
std::string why_not_as_written(const NamedFile& file);

}  // namespace larch::detail
