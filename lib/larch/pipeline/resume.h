// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "larch/core/context.h"

namespace larch::pipeline {

/// Whether the checkpoint that --resume asks for is there. Where it is not, the run begins at
/// `start` ("the seeds") with a warning that names the file: jobs that are started again and again
/// give --resume from their first run on, but a name that is mistyped must not pass unseen.
bool has_checkpoint_to_resume(const std::string& path, const std::string& start,
                              const Context& context);

/// Removes a checkpoint that is not needed any more: a container of one of `kinds`. A file that is
/// none of them, such as a model, which a short run with -f has not replaced, stays.
void remove_checkpoint(const std::string& path, std::initializer_list<std::string_view> kinds);

}  // namespace larch::pipeline
