// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "larch/app/outputs/file_set.h"
#include "larch/app/records/shared_folder.h"
#include "larch/core/error.h"

namespace larch::detail {

/// The sidecar of an output.
struct Sidecar {
  std::string output;
  std::string path;
  std::string text{};           ///< empty: none is written, and an old one goes
  bool may_hold_files = false;  ///< the output is a folder, perhaps with files of an earlier run
  std::vector<std::string> names{};  ///< what its "Outputs" names
};

/// What had the names of outputs when it was decided to compute them. Several threads may ask.
class SeenOutputs {
 public:
  /// Remembers what is there. The last time counts.
  void note(const std::string& path);
  /// Whether it is the same file still, or still none. True for what was not noted.
  bool is_as_noted(const std::string& path) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> stamps_;
};

/// An output appeared or changed during the run, so that it is not replaced.
struct OutputAppeared : OutputError {
  using OutputError::OutputError;
};

/// Gives outputs and sidecars their names, so that there is no moment at which an output stands
/// beside the sidecar of another run: the sidecar of a name that was free comes first; that of an
/// output that is replaced says so until the new one is there. What an interruption leaves is
/// therefore computed again by --skip-existing. An orphan (existing.h) is replaced in any case. The
/// names are given in this order, and each folder is flushed once, when all have theirs: what keeps
/// the order when the power fails is the journal of the file system. `files` are the outputs,
/// written already. Throws as FileSet::commit does; sidecars are then as they were, but orphans are
/// gone.
///
/// Meanwhile the run holds the locks of all folders that outputs and sidecars lie in, so that those
/// of runs that write the same names do not mix; where locks are not supported it goes on without.
/// Throws OutputError if another run holds one of them all the time for `lock_seconds`, and
/// OutputAppeared if one of the outputs is not as it was `seen` (null: that does not matter).
void commit_with_sidecars(FileSet& files, const std::vector<Sidecar>& sidecars,
                          const std::string& app, bool replace, const Context& context,
                          const SeenOutputs* seen = nullptr, double lock_seconds = kLockSeconds);

}  // namespace larch::detail
