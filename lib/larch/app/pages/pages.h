// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "larch/app/command_line.h"

// The texts that an executable prints about itself; all come from the declared fields.
namespace larch::detail {

/// Synopsis, examples, inputs, outputs, options, common flags.
std::string help_page(const Program& program, const CommandLine& line);
/// Every configuration key with type, range, default and meaning.
std::string config_help_page(const Program& program, const CommandLine& line);
/// Returns the manual page, in roff: all of help_page, and the keys of the configuration.
std::string manual_page(const Program& program, const CommandLine& line);
/// Returns a script for bash that completes flags, words of a choice, and file names.
std::string bash_completion(const Program& program, const CommandLine& line);
/// Returns what a path is for, or those of a list; nothing if the parameter is no path.
inline std::optional<PathRole> role_of(const config::Node& node) {
  if (node.path) return node.path;
  return node.prototype ? node.prototype().path : std::nullopt;
}

/// Returns the description that 3D Slicer reads from a command-line module, as its execution model
/// wants it. Flags stand there as identifiers; lists of structs and what asks for many images are
/// left out.
std::string slicer_xml(const Program& program, const CommandLine& line);

}  // namespace larch::detail
