// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace larch::emulation {

/// Memory for the stacks of many threads, kept until the program ends.
class Stacks {
 public:
  /// For so many threads. What was on stacks before is lost.
  void reserve(size_t threads);
  /// A stack pointer for switch_stacks, which calls `main` on a new stack. It must not return.
  void* begin(size_t thread, void (*main)());
  /// Has a thread not gone over the end of its stack?
  bool is_whole(size_t thread) const;
  bool contains(const void* address) const {
    return static_cast<size_t>(static_cast<const char*>(address) - memory_) < bytes_;
  }

 private:
  char* memory_ = nullptr;
  size_t bytes_ = 0;
};

/// Leaves one stack, whose pointer is kept in *save, and goes on with another.
void switch_stacks(void** save, void* next);

}  // namespace larch::emulation
