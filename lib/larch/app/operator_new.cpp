// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0

// The executables' own operator new, which the standard allows to replace. It differs from the
// default in two things: the exception knows how many bytes were asked for, so that the message of
// exit code 5 can say it; and a large allocation is refused when it exceeds what the process may
// take, where the kernel would promise it and end the process later.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "larch/core/host_memory.h"

void* operator new(size_t bytes) {
  while (true) {
    void* data =
        larch::host_memory_allows(bytes) ? std::malloc(std::max<size_t>(bytes, 1)) : nullptr;
    if (data != nullptr) return data;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw larch::OutOfMemory(bytes);
    handler();
  }
}

void operator delete(void* data) noexcept {
  std::free(data);
}

void operator delete(void* data, size_t /*bytes*/) noexcept {
  std::free(data);
}
