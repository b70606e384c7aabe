// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Copies from global to shared memory that need no registers. They arrive by wait_for_copies at the
// latest, for the thread that started them; others see them after a barrier that follows it.
namespace larch::cuda {

/// Four bytes.
__device__ inline void copy_word(void* shared, const void* from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
/// Sixteen bytes, both places on multiples of 16.
__device__ inline void copy_four_words(void* shared, const void* from) {
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace larch::cuda
