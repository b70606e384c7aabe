// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

namespace larch::detail {

/// From now on the first SIGINT or SIGTERM sets the flag to 130 or 143; a second one removes the
/// temporary files and ends the process at once. SIGXFSZ (ulimit -f) becomes an ordinary write
/// error.
const std::atomic<int>* catch_signals();

/// Names of files that the second signal removes. Files beyond 512 at a time are not remembered.
void remember_temporary(const std::string& path);
void forget_temporary(const std::string& path);

}  // namespace larch::detail
