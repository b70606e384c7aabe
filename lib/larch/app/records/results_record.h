// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "larch/app/command_line.h"
#include "larch/app/outputs/paths_check.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"

namespace larch::detail {

/// Returns the stamp by which an input is known again without reading it: {"Bytes", "Modified",
/// "Changed", "Inode"}, times in nanoseconds since 1970; of a folder {"Files", "Bytes", "Listing",
/// "Changed"}, the SHA-256 of the names, sizes, times of modification and inodes of its files, and
/// that of their names and times of change: a copy that keeps the time of modification has those of
/// its own. null for what is neither.
config::Json input_stamp(const std::string& path);

/// Stamps and digests of the inputs of a process; each content is read once. Several threads may
/// ask.
class InputDigests {
 public:
  /// Remembers the stamp of an input that is going to be read.
  void note(const std::string& path);
  /// The digest of what was read of an input, or of a file of a folder that is one, since it was
  /// noted, so that `record` does not read it.
  void know(const std::string& path, const std::string& digest);
  /// Calls know().
  DigestSink sink();
  /// The stamp, and "SHA256" unless the input cannot be read twice (a pipe). If the stamp is not
  /// what it was when it was noted, there is "ChangedDuringRun" instead: also after a change of
  /// rights or names alone, since a content that is written over keeps its size and can be given
  /// its old time of modification. Throws InputError.
  config::Json record(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, config::Json> noted_;
  std::map<std::string, std::string> digests_;                       // by path and stamp
  std::map<std::string, std::map<std::string, std::string>> files_;  // of noted folders, by path
};

/// All that decides the bytes of the results of a run.
struct ResultsBasis {
  const Program& program;
  const CommandLine& line;
  std::vector<RunInput> inputs;  ///< all that are known, also those that do not count
  bool order_matters = true;     ///< of the cases of a list
};

/// Returns the inputs that flags name, in their order, then the files of --config. `by_case`: a
/// folder holds files of cases, which are their own inputs.
std::vector<RunInput> flag_inputs(const std::vector<GivenPath>& paths, const CommandLine& line,
                                  bool by_case);

/// The basis as records tell it: {"App", "ResultsVersion", "Options" (flags that are
/// neither files nor without effect on the results), "Config", "Seed", "Inputs"}. Reads inputs that
/// `digests` does not know. Throws InputError.
config::Json results_record(const ResultsBasis& basis, InputDigests& digests);

/// Returns the text under a key of an object; empty if there is none.
std::string text_at(const config::Json& object, const char* key);

/// Tells, for people, how the run of `there`, a record as results_record writes it but from a file
/// that nobody vouches for, differs from that of `now`: "structure.threshold: 0.5 there, 0.6 now".
/// None: their results are the same. Inputs are read only if their stamps differ. Throws
/// InputError, also for an input that is not there.
std::vector<std::string> differences(const config::Json& there, const ResultsBasis& now,
                                     InputDigests& digests);

}  // namespace larch::detail
