// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "larch/core/error.h"

namespace larch::detail {

struct Failure {
  ExitCode code = ExitCode::kBug;
  bool expected = false;           ///< a larch::Error or what counts as one is in the chain
  bool stopped = false;            ///< larch::Stopped: not an error but an early end
  std::vector<std::string> chain;  ///< the outermost message first
};

/// Takes the messages of an exception and those nested in it. The code is that of the first
/// larch::Error from the outside; std::bad_alloc and a thread that could not be started count as
/// MemoryError; anything else is a bug.
Failure failure_of(std::exception_ptr error);

/// Returns the chain in one line: "cannot read start mesh 'a.gii': no triangles in data array 2".
std::string in_one_line(const Failure& failure);

}  // namespace larch::detail
