// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/core/context.h"

namespace larch::pipeline {

/// Whether the checkpoint that --resume asks for is there. Where it is not, the run begins at
/// `start` ("the seeds") with a warning that names the file: jobs that are started again and again
/// give --resume from their first run on, but a name that is mistyped must not pass unseen.
bool has_checkpoint_to_resume(const std::string& path, const std::string& start,
                              const Context& context);

}  // namespace larch::pipeline
