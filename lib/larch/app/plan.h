// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "larch/core/error.h"

namespace larch {

/// What a run would do, found without doing it. --dry-run prints it.
struct Plan {
  std::vector<std::vector<std::string>> table{};  ///< of the cases; the first row names the columns
  int64_t memory_bytes = 0;             ///< of the largest case, by its planner; 0: it has none
  std::vector<std::string> notes{};     ///< further lines for the log
  std::vector<std::string> problems{};  ///< each would end the run, or a case of it
  ExitCode code = ExitCode::kDone;      ///< with which the run would end because of them
};

}  // namespace larch
