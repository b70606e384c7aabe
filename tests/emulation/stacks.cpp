// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/stacks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include <sys/mman.h>

// Pushes the registers that a function must keep (System V ABI for x86-64) on the old stack, and
// pops those of the new one.
extern "C" void larch_switch_stacks(void** save, void* next);
asm(R"(
  .text
  .globl larch_switch_stacks
  .type larch_switch_stacks, @function
larch_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size larch_switch_stacks, . - larch_switch_stacks
)");

namespace larch::emulation {
namespace {

/// Of one thread. Not a power of two: the same places of all stacks would share a line of cache.
constexpr size_t kStackBytes = (24 << 10) + 320;
constexpr uint64_t kEndOfStack = 0x5ca1ab1e0ddba115ULL;

}  // namespace

void Stacks::reserve(size_t threads) {
  const size_t wanted = threads * kStackBytes;
  if (wanted <= bytes_) return;
  if (memory_ != nullptr) munmap(memory_, bytes_);
  void* got = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(got);
  bytes_ = wanted;
}

void* Stacks::begin(size_t thread, void (*main)()) {
  char* stack = memory_ + thread * kStackBytes;
  std::memcpy(stack, &kEndOfStack, sizeof kEndOfStack);
  // Six registers, where to go, and the place of a return address: so the stack is aligned as at
  // the start of every function.
  auto* top = reinterpret_cast<void**>(stack + kStackBytes) - 8;
  std::fill(top, top + 8, nullptr);
  top[6] = reinterpret_cast<void*>(main);
  return top;
}

bool Stacks::is_whole(size_t thread) const {
  return std::memcmp(memory_ + thread * kStackBytes, &kEndOfStack, sizeof kEndOfStack) == 0;
}

void switch_stacks(void** save, void* next) {
  larch_switch_stacks(save, next);
}

}  // namespace larch::emulation
