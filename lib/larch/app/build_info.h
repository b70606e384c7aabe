// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/config/config.h"

namespace larch {

/// "0.1.0".
std::string version();
/// Commit of the source tree, with "-dirty" if it was changed; "unknown" outside a git checkout.
/// Defined in a file that the build writes, so that a commit rebuilds that file alone.
const char* git_revision();
/// {"Version", "GitRevision", "Compiler", "CUDA"}.
config::Json build_info();

}  // namespace larch
