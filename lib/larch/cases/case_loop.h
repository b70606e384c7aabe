// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "larch/core/context.h"

// Many cases, each in a thread of its own, side by side within a bound of memory.
namespace larch::cases {

/// To be called before the first volume is read: memory of a volume goes back to the system when it
/// is let go, without which a promise of `memory_bytes` (0: none) would not be kept.
void give_memory_back(int64_t memory_bytes);

/// Warns if an image of `voxels` voxels of `bytes_per_voxel` is alone more than the promise.
void warn_of_memory(const std::string& path, int64_t voxels, int bytes_per_voxel,
                    int64_t memory_bytes, const Context& context);

struct CaseSize {
  int64_t voxels = 0;
  int64_t bytes = 0;  ///< on the host, as far as they are known: a first guess
};

struct CaseLoop {
  size_t count = 0;
  int64_t memory_bytes = 0;  ///< 0: half of what is free
  /// The size of a case before it is worked on. What it throws is left for `work` to find again.
  std::function<CaseSize(size_t)> size;
  /// Does a case. What it throws is its failure; Stopped and DeviceError end the run.
  std::function<void(size_t, const Context&)> work;
  /// Called for a case that failed, from its thread. False ends the run.
  std::function<bool(size_t, const std::exception_ptr&)> failed;
};

/// Works on all cases, in their order, up to three of them for every two threads and more where
/// there are few threads, since reading and writing wait. Cases start while the sum of their memory
/// fits; a case that is larger goes alone. The memory of a case is its first guess or, if that is
/// more, its voxels times the largest peak of the process per voxel in work that was seen. A case
/// that fails for want of memory beside others is done again alone, after the others.
///
/// A case has its share of the threads of `context` outside of its turn, all of them if it is
/// alone. It sees no stop flag: once that is set no further case starts and none gets a turn.
/// Throws what ended the run, after all threads have ended.
void run_case_loop(const CaseLoop& loop, const Context& context);

}  // namespace larch::cases
