// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace larch::detail {

/// From now on the first SIGINT or SIGTERM sets the flag to 130 or 143; a second one removes the
/// temporary files and ends the process at once. SIGXFSZ (ulimit -f) and SIGPIPE (a reader that
/// went away) become ordinary write errors.
const std::atomic<int>* catch_signals();

}  // namespace larch::detail
