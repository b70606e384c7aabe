// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "larch/app/command_line.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/outputs/paths.h"

namespace larch::detail {

/// A path that a flag or the configuration gives.
struct GivenPath {
  std::string flag;  ///< "--input"
  PathRole role;
  std::string path;
};

std::vector<GivenPath> given_paths(const CommandLine& line);

/// Throws UsageError for a required flag that is missing, and for one with an empty value.
void check_usage(const CommandLine& line);

/// Throws InputError for a file or folder that is missing, of the wrong kind or may not be read.
void check_inputs(const std::vector<GivenPath>& paths);

/// All names that the run will write.
struct PlannedOutputs {
  CaseFiles files{};                   ///< of flags, the report, companions and the record
  std::vector<std::string> folders{};  ///< OutputDir, OutputPage
  std::vector<std::string> all() const;
};
/// Tells whether a name lies below an output folder, which is made.
bool is_below(const std::string& path, const std::vector<std::string>& folders);
/// `by_case`: the files of cases and their records are not among them.
PlannedOutputs planned_outputs(const CommandLine& line, const std::vector<GivenPath>& paths,
                               const std::vector<std::string>& companions, bool by_case);

/// The files that a run reads, by name and by device and inode: none of them may be written.
class ReadFiles {
 public:
  void add(const RunInput& input, bool is_listed);
  /// Throws UsageError if `output` is one of them, also by a link.
  void refuse(const std::string& output) const;

 private:
  std::map<std::string, std::string> roles_;  ///< by resolved name
  std::map<std::pair<dev_t, ino_t>, std::string> files_;
};

/// Throws UsageError if an output, the record or a companion is also an input or an output folder,
/// or if two of them are one file: --force would let the later one replace the earlier.
void check_distinct(const std::vector<RunInput>& inputs, const PlannedOutputs& planned);
/// Throws UsageError if an output, the record or a companion is one of these inputs.
void refuse_replacing(const std::vector<RunInput>& inputs, const PlannedOutputs& planned);

/// Throws UsageError if the log of --log-file would be appended to an input, to an output, or to a
/// file that holds no text, such as an image that only a list names, or if it is in an output
/// folder and not called *.log or *.txt. To be called, if there is a --log-file, before the log is
/// opened.
void check_log_file(const CommandLine& line, const std::vector<GivenPath>& paths,
                    const PlannedOutputs& planned);

/// Throws OutputError if a name is that of a folder, a pipe or a device, or if its folder is
/// missing or cannot be written to. Tries it.
void check_outputs(const PlannedOutputs& planned);

}  // namespace larch::detail
