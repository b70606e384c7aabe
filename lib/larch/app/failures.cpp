// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/failures.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "larch/core/host_memory.h"
#include "larch/core/parallel.h"

namespace larch::detail {
namespace {

/// What the standard library throws for a thread that could not be started.
bool is_thread_failure(const std::system_error& error) {
  return error.code() == std::errc::resource_unavailable_try_again &&
         dynamic_cast<const std::filesystem::filesystem_error*>(&error) == nullptr;
}

void add(std::exception_ptr error, Failure& failure, bool& decided) {
  const auto decide = [&](ExitCode code) {
    if (!decided) failure.code = code;
    decided = true;
  };
  const auto descend = [&](const std::exception& e) {
    try {
      std::rethrow_if_nested(e);
    } catch (...) {
      add(std::current_exception(), failure, decided);
    }
  };
  try {
    std::rethrow_exception(std::move(error));
  } catch (const Error& e) {
    if (dynamic_cast<const Stopped*>(&e) != nullptr) failure.stopped = true;
    decide(e.code());
    failure.chain.emplace_back(e.what());
    descend(e);
  } catch (const std::bad_alloc& e) {
    decide(ExitCode::kMemory);
    const auto* known = dynamic_cast<const OutOfMemory*>(&e);
    failure.chain.push_back(out_of_memory_text(known != nullptr ? known->needed_bytes() : 0));
    descend(e);
  } catch (const std::system_error& e) {
    if (is_thread_failure(e)) decide(ExitCode::kMemory);
    failure.chain.push_back(is_thread_failure(e) ? out_of_threads_text(0, 0) : e.what());
    descend(e);
  } catch (const std::exception& e) {
    failure.chain.emplace_back(e.what());
    descend(e);
  } catch (...) {
    failure.chain.emplace_back("an exception of an unknown type");
  }
}

}  // namespace

Failure failure_of(std::exception_ptr error) {
  Failure failure;
  bool decided = false;
  add(std::move(error), failure, decided);
  failure.expected = decided;
  return failure;
}

std::string in_one_line(const Failure& failure) {
  std::string text;
  for (const std::string& part : failure.chain) text += (text.empty() ? "" : ": ") + part;
  return text;
}

}  // namespace larch::detail
