// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"

// What no kernel on a card can be faster than, to be measured beside the kernels.
namespace larch::perf::cuda {

/// How all blocks of threads of a launch wait for each other.
enum class GridBarrier {
  kCooperative,  ///< grid.sync() of cooperative groups
  kCounter       ///< one addition that nobody waits for, then reading until all have come
};

/// Seconds of one meeting of all threads of the card, 1024 per processor; the mean over `count`.
double seconds_of_barrier(GridBarrier barrier, int32_t count, const Context& context);

/// Seconds until a value that lies in the card's second cache is there, each read at the place
/// that the one before gave; the mean over `count`.
double seconds_of_read(int32_t count, const Context& context);

/// Bytes read and written per second where `bytes` are copied within the card's memory.
double copy_rate(int64_t bytes, const Context& context);

}  // namespace larch::perf::cuda
