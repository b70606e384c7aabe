// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/error.h"

namespace larch {

/// What a run would do, found without doing it. --dry-run prints it.
struct Plan {
  /// An output and its size before compression.
  struct File {
    std::string path;
    int64_t bytes = 0;
    bool compressed = true;  ///< then it may well be smaller
  };

  std::vector<std::vector<std::string>> table{};  ///< of the cases; the first row names the columns
  std::vector<File> files{};                      ///< images alone: the rest is small
  int64_t memory_bytes = 0;             ///< of the host at most, roughly; 0: not estimated
  double seconds = 0;                   ///< roughly; 0: not estimated
  std::vector<std::string> notes{};     ///< further lines for the log
  std::vector<std::string> problems{};  ///< each would end the run, or a case of it
  ExitCode code = ExitCode::kDone;      ///< with which the run would end because of them
};

namespace detail {

/// The rows with their cells in columns, two spaces apart.
std::string aligned(const std::vector<std::vector<std::string>>& table);

/// Logs what `plan` says of memory, time and disk. Throws OutputError if files that are not
/// compressed do not fit on a disk; warns if they would not fit with those that are, or if the
/// memory is not free now.
void log_plan(const Plan& plan, const Context& context);

}  // namespace detail
}  // namespace larch
