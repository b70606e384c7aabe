// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/file_set.h"

namespace larch::detail {

/// The sidecar of an output.
struct Sidecar {
  std::string output;
  std::string path;
  std::string text{};           ///< empty: none is written, and an old one goes
  bool may_hold_files = false;  ///< the output is a folder, perhaps with files of an earlier run
  std::vector<std::string> names{};  ///< what its "Outputs" names
};

/// Gives outputs and sidecars their names, so that there is no moment at which an output stands
/// beside the sidecar of another run: the sidecar of a name that was free comes first; that of an
/// output that is replaced says so until the new one is there. What an interruption leaves is
/// therefore computed again by --skip-existing. An orphan (existing.h) is replaced in any case. The
/// names are given in this order, and each folder is flushed once, when all have theirs: what keeps
/// the order when the power fails is the journal of the file system. `files` are the outputs,
/// written already. Throws as FileSet::commit does; sidecars are then as they were, but orphans are
/// gone.
void commit_with_sidecars(FileSet& files, const std::vector<Sidecar>& sidecars,
                          const std::string& app, bool replace, const Context& context);

}  // namespace larch::detail
