// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace larch::cases {

/// Memory of a case on its way, in bytes on the host, beside the program itself.
struct MemoryNeed {
  int64_t reading = 0;    ///< while it is read
  int64_t computing = 0;  ///< while it is computed
  int64_t surveying = 0;  ///< while it is found out how much finishing takes
  int64_t finishing = 0;  ///< while it is finished, at most
  int64_t resting = 0;    ///< while it waits between stages
  /// What it takes however its work is divided; 0 if that is not known.
  int64_t least = 0;

  int64_t most() const { return std::max({reading, computing, surveying, finishing, resting}); }
};

/// Throws MemoryError if the least that one case of many takes is more than `memory_bytes` (0: no
/// promise was made).
void require_least(const MemoryNeed& need, int64_t memory_bytes);

/// To be called before the first volume is read: memory of a volume goes back to the system when it
/// is let go, without which a promise of `memory_bytes` (0: none) would not be kept.
void give_memory_back(int64_t memory_bytes);

}  // namespace larch::cases
