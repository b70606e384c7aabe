// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/records/shared_folder.h"
#include "larch/config/config.h"
#include "larch/core/context.h"

namespace larch::detail {

/// Earlier runs that larch.json tells of, and their bytes as JSON; the oldest are left out.
constexpr size_t kMostEarlierRuns = 1000;
constexpr size_t kMostEarlierBytes = size_t{4} << 20;

/// Adds a run to larch.json of a folder into which other runs write as well, perhaps at the same
/// time. The file is the sidecar of the run that ended last; its object "Larch" has the list
/// "EarlierRuns": the objects "Larch" of the runs before it, the latest first. Each of them has the
/// random "Run", by which it is taken once. The file is rewritten under the lock of the folder. If
/// another run holds that for `wait_seconds`, the record goes to the part
/// ".larch/run-<Run>.json", which the next run takes in; `context` is warned. Where the file
/// system has no locks each run leaves its part, writes the union of all, and looks again whether
/// another run has written in between. What cannot be understood is kept under another name, with a
/// warning. Throws OutputError.
void write_folder_record(const std::string& folder, const config::Json& sidecar,
                         const Context& context, double wait_seconds = kLockSeconds);

}  // namespace larch::detail
