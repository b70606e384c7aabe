// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "larch/app/plan.h"
#include "larch/cases/run_cases.h"
#include "larch/core/context.h"

namespace larch::cases {

/// What run_cases would find, for --dry-run: check_cases, then for each case what an earlier run
/// left of it, and `look` for those that would be done. `look` gets the number of a case and the
/// plan, to which it adds what the case takes (files, memory); it throws what would be the failure
/// of the case, require_least included.
///
/// What is wrong with cases is in the problems of the plan, each with its id, and its code is that
/// of the run: with a folder 7, or 5 if memory is what all of them lack; without one that of the
/// first problem. Throws DeviceError, which ends a run as well, what check_cases throws, and
/// Stopped.
Plan plan_cases(const CaseRun& run, const std::function<void(size_t, Plan&)>& look,
                const Context& context);

}  // namespace larch::cases
