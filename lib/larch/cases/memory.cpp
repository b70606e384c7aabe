// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/memory.h"

#include <string>

#include <malloc.h>

#include "larch/core/error.h"

namespace larch::cases {

void require_least(const MemoryNeed& need, int64_t memory_bytes) {
  if (memory_bytes <= 0 || need.least <= memory_bytes) return;
  throw MemoryError("reading, computing or writing this case needs at least " +
                    std::to_string(need.least) + " bytes, --memory allows " +
                    std::to_string(memory_bytes) + "; allow more");
}

void give_memory_back(int64_t memory_bytes) {
  if (memory_bytes > 0) mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

}  // namespace larch::cases
