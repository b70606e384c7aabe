// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/failures.h"

#include <cstdio>
#include <new>

#include "larch/core/device.h"

namespace larch::detail {
namespace {

std::string out_of_memory() {
  char free[32];
  std::snprintf(free, sizeof free, "%.1f GiB",
                static_cast<double>(free_memory_bytes(Device::cpu())) / (1024.0 * 1024 * 1024));
  return std::string("out of memory, with ") + free +
         " free: run where more is free or allowed, or on a smaller or coarser image";
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
    failure.chain.push_back(out_of_memory());
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

}  // namespace larch::detail
