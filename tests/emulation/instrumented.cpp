// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "tests/emulation/device_threads.h"

// GCC calls these before each access to memory, in kernels that are compiled with -fsanitize=thread
// and linked without its library.

// NOLINTBEGIN(bugprone-reserved-identifier): the names are GCC's
#define LARCH_ACCESS(bytes)                                                      \
  void __tsan_read##bytes(void* at) {                                            \
    larch::emulation::use_memory(at, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  void __tsan_write##bytes(void* at) {                                           \
    larch::emulation::use_memory(at, bytes, true, __builtin_return_address(0));  \
  }                                                                              \
  void __tsan_unaligned_read##bytes(void* at) {                                  \
    larch::emulation::use_memory(at, bytes, false, __builtin_return_address(0)); \
  }                                                                              \
  void __tsan_unaligned_write##bytes(void* at) {                                 \
    larch::emulation::use_memory(at, bytes, true, __builtin_return_address(0));  \
  }

extern "C" {
LARCH_ACCESS(1)
LARCH_ACCESS(2)
LARCH_ACCESS(4)
LARCH_ACCESS(8)
LARCH_ACCESS(16)
void __tsan_read_range(void* at, size_t bytes) {
  larch::emulation::use_memory(at, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* at, size_t bytes) {
  larch::emulation::use_memory(at, bytes, true, __builtin_return_address(0));
}
// What host code in these files has of std::atomic and of counted pointers.
int __tsan_atomic32_load(const volatile int* at, int /*order*/) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
char __tsan_atomic8_load(const volatile char* at, int /*order*/) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
long __tsan_atomic64_load(const volatile long* at, int /*order*/) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_fetch_add(volatile int* at, int value, int /*order*/) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
// NOLINTEND(bugprone-reserved-identifier)
