// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/command_line.h"
#include "larch/app/outputs/paths.h"

namespace larch::detail {

/// Whether there is something under the name, behind links; false where that cannot be known.
bool path_exists(const std::string& path);

/// Whether an output of that name goes to a device, a pipe or a descriptor: it has no sidecar, need
/// not be free, and may take several outputs.
bool is_stream(const std::string& path);

/// A path that a flag or the configuration gives.
struct GivenPath {
  std::string flag;  ///< "--input"
  PathRole role;
  std::string path;
};

std::vector<GivenPath> given_paths(const CommandLine& line);

/// Throws UsageError for a required flag that is missing or an output that is named twice.
void check_usage(const CommandLine& line, const std::vector<GivenPath>& paths);

/// Throws InputError for a file or folder that is missing, of the wrong kind or may not be read.
void check_inputs(const std::vector<GivenPath>& paths);

/// All names that the run will write: outputs, companions, sidecars and the report.
struct PlannedOutputs {
  std::vector<std::string> main;     ///< and the report, if it is a file
  std::vector<std::string> further;  ///< companions and sidecars
  std::vector<std::string> folders;  ///< OutputDir
  bool by_case =
      false;  ///< what is there already is looked at case by case; folders may hold files
};
PlannedOutputs planned_outputs(const CommandLine& line, const std::vector<GivenPath>& paths,
                               const std::vector<std::string>& companions);

/// Throws UsageError if an output, a sidecar or a companion is also an input, or if two of them are
/// one file: --force would let the later one replace the earlier.
void check_distinct(const std::vector<GivenPath>& paths, const PlannedOutputs& planned);

/// Throws UsageError if the log of --log-file would be appended to an input, to an output, or to a
/// file that holds no text, such as an image that only a list names, or if it is in an output
/// folder and not called *.log or *.txt. To be called before the log is opened.
void check_log_file(const CommandLine& line, const std::vector<GivenPath>& paths,
                    const PlannedOutputs& planned);

/// Throws OutputError if something but the `orphans` exists and `may_replace` is not set, or a
/// folder is missing or cannot be written to.
void check_outputs(const PlannedOutputs& planned, bool may_replace,
                   const std::vector<std::string>& orphans);

/// Throws OutputError if one of these files exists.
void require_free(const std::vector<std::string>& outputs);

}  // namespace larch::detail
