// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>

#include "larch/app/failures.h"

namespace larch::test {

/// What a program makes of the exception that `body` throws; nothing if it throws none.
inline detail::Failure failure_from(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return detail::failure_of(std::current_exception());
  }
  return {};
}

}  // namespace larch::test
