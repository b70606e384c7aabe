// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Shared memory by its addresses, which are 32 bits wide, as instructions in assembly use it.
// as_cpp.py writes calls of these in place of the instructions.
namespace larch::emulation {

/// The address of what `memory` points to, which is shared by the running block.
uint32_t shared_address(const void* memory);
/// What has such an address.
void* shared_memory_at(size_t address);
/// ld.shared.u32
uint32_t load_shared(uint32_t address);
/// red.shared.add.u32 of 1
void count_shared(uint32_t address);
/// cp.async of 4 or 16 bytes to an address: nobody sees them before wait_for_copies.
void copy_word_later(uint32_t address, const void* from);
void copy_four_words_later(uint32_t address, const void* from);
/// cp.async.wait_all: the copies of the running thread have arrived.
void wait_for_copies();
/// Sorts keys between two barriers, for a stand-in of CUB.
void sort_keys(int32_t* keys, size_t count);

}  // namespace larch::emulation

// NOLINTBEGIN(bugprone-reserved-identifier): the name is CUDA's
inline size_t __cvta_generic_to_shared(const void* memory) {
  return larch::emulation::shared_address(memory);
}
inline void* __cvta_shared_to_generic(size_t address) {
  return larch::emulation::shared_memory_at(address);
}
// NOLINTEND(bugprone-reserved-identifier)
