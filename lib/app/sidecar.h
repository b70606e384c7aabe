// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/command_line.h"
#include "larch/app/paths_check.h"
#include "larch/config/config.h"
#include "larch/core/context.h"

namespace larch::detail {

/// "seg.nii.gz.json": the whole name is kept, since a run may write p.png and p.nii.gz.
std::string sidecar_name(const std::string& output);
/// "<folder>/larch.json".
std::string folder_sidecar_name(const std::string& folder);

/// What is told about a run.
struct RunRecord {
  const Program& program;
  const CommandLine& line;
  const Context& context;
  const Outputs& outputs;
  std::vector<std::string> inputs;  ///< from flags and from Outputs::input, each once
  double seconds = 0;
};

/// Every input file that was read, each once.
std::vector<std::string> input_names(const std::vector<GivenPath>& paths, const CommandLine& line,
                                     const Outputs& outputs);

/// SHA-256 of a file; of a folder, that of the lines "<sha256>  <name>" of its files (and those of
/// the folders below) in the order of their names. Empty for what is neither. Throws InputError.
std::string input_digest(const std::string& path);

/// The sidecar: BIDS keys and one object "Larch". Reads the inputs to hash them.
config::Json sidecar(const RunRecord& record);

/// What --report writes.
config::Json report(const RunRecord& record);

}  // namespace larch::detail
