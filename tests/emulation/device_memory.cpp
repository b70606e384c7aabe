// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/device_memory.h"

#include <algorithm>
#include <cstring>

#include "tests/emulation/launch_state.h"

namespace larch::emulation {
namespace {

/// Of the first byte of a block's shared memory; what is below belongs to nobody.
constexpr uint32_t kFirstAddress = 1024;

char* shared_memory() {
  return reinterpret_cast<char*>(running->block->shared.get());
}

/// The word at an address.
void* word_at(uint32_t address) {
  if (address % 4 != 0 || address < kFirstAddress ||
      address - kFirstAddress + 4 > running->block->shared_bytes) {
    launch->fail("there is no word at address " + std::to_string(address) + " of shared memory");
  }
  return shared_memory() + (address - kFirstAddress);
}

}  // namespace

uint32_t shared_address(const void* memory) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(memory) - shared_memory());
  if (offset > running->block->shared_bytes) {
    launch->fail("the address of something that is not in shared memory is asked for");
  }
  return kFirstAddress + static_cast<uint32_t>(offset);
}

void* shared_memory_at(size_t address) {
  return word_at(static_cast<uint32_t>(address));
}

uint32_t load_shared(uint32_t address) {
  const void* at = word_at(address);
  use_memory(at, 4, false, __builtin_return_address(0));
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void count_shared(uint32_t address) {
  void* at = word_at(address);
  use_atomic(at, 4, __builtin_return_address(0));
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  ++value;
  std::memcpy(at, &value, sizeof value);
}

void copy_word_later(uint32_t address, const void* from) {
  running->copies.emplace_back(word_at(address), from);
}

void copy_four_words_later(uint32_t address, const void* from) {
  if (address % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    launch->fail("a copy of 16 bytes begins at no multiple of 16");
  }
  for (uint32_t word = 0; word < 4; ++word) {
    running->copies.emplace_back(word_at(address + 4 * word),
                                 static_cast<const char*>(from) + 4 * size_t{word});
  }
}

void wait_for_copies() {
  for (const auto& [to, from] : running->copies) {
    use_memory(to, 4, true, __builtin_return_address(0));
    std::memcpy(to, from, 4);
  }
  running->copies.clear();
}

void sort_keys(int32_t* keys, size_t count) {
  std::sort(keys, keys + count);
}

}  // namespace larch::emulation
