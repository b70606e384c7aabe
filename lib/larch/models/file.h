// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/core/error.h"
#include "larch/models/container.h"

namespace larch::models {

/// Reads a file as a container. The header is checked before the rest is read, so that a large file
/// of something else costs nothing. Throws InputError.
Container read_container(const std::string& path);

/// Writes a temporary file beside `path` and renames it. Throws OutputError, and InputError as
/// encode_container.
void write_container(const std::string& path, const Container& container);

/// Throws InputError unless a checkpoint was written with the digest of what is trained now.
void require_fingerprint(const std::string& of_checkpoint, const std::string& wanted);

/// Runs `read` and begins every error with "cannot read the `what` 'path': ".
template <class F>
auto naming_file(const char* what, const std::string& path, F&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw InputError(std::string("cannot read the ") + what + " '" + path + "': " + error.what());
  }
}

}  // namespace larch::models
