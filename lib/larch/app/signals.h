// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace larch::detail {

/// From now on the first SIGINT or SIGTERM sets the flag to 130 or 143. A second one ends the
/// process at once, and so does a timer when the process has not ended 8 seconds after the first:
/// some libraries cannot be interrupted, and schedulers kill what does not end. Ending at once
/// removes the temporary files; it waits up to a second for outputs that just get their names.
/// SIGXFSZ (ulimit -f) and SIGPIPE become ordinary write errors.
const std::atomic<int>* catch_signals();

/// While one lives the outputs of a run get their names, which is not to be torn in two.
class Committing {
 public:
  /// Does not return when the process is already being ended.
  Committing();
  ~Committing();
  Committing(const Committing&) = delete;
  Committing& operator=(const Committing&) = delete;
};

/// Lets std::terminate remove the temporary files, say what was thrown and end the process with the
/// exit code of that exception, 5 for memory and threads. Not a way to handle errors: for what a
/// library throws where nobody can catch it.
void catch_terminate();

}  // namespace larch::detail
