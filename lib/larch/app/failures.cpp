// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/failures.h"

#include <filesystem>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "larch/core/host_memory.h"
#include "larch/core/parallel.h"

namespace larch::detail {
namespace {

/// Tells whether the standard library could not start a thread.
bool is_thread_failure(const std::exception& e) {
  const auto* error = dynamic_cast<const std::system_error*>(&e);
  return error != nullptr && error->code() == std::errc::resource_unavailable_try_again &&
         dynamic_cast<const std::filesystem::filesystem_error*>(&e) == nullptr;
}

void add(const std::exception& e, Failure& failure) {
  std::string text = e.what();
  std::optional<ExitCode> code;
  if (const auto* error = dynamic_cast<const Error*>(&e)) {
    code = error->code();
    if (dynamic_cast<const Stopped*>(&e) != nullptr) failure.stopped = true;
  } else if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    code = ExitCode::kMemory;
    const auto* known = dynamic_cast<const OutOfMemory*>(&e);
    text = out_of_memory_text(known != nullptr ? known->needed_bytes() : 0);
  } else if (is_thread_failure(e)) {
    code = ExitCode::kMemory;
    text = out_of_threads_text(0, 0);
  }
  if (code && !failure.expected) failure.code = *code;
  failure.expected = failure.expected || code;
  failure.chain.push_back(text);
}

}  // namespace

Failure failure_of(std::exception_ptr error) {
  Failure failure;
  while (error) {
    try {
      std::rethrow_exception(std::exchange(error, nullptr));
    } catch (const std::exception& e) {
      add(e, failure);
      const auto* nested = dynamic_cast<const std::nested_exception*>(&e);
      if (nested != nullptr) error = nested->nested_ptr();
    } catch (...) {
      failure.chain.emplace_back("an exception of an unknown type");
    }
  }
  return failure;
}

std::string in_one_line(const Failure& failure) {
  std::string text;
  for (const std::string& part : failure.chain) text += (text.empty() ? "" : ": ") + part;
  return text;
}

}  // namespace larch::detail
