// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace larch {

/// Calls body(begin, end) on disjoint ranges that cover [0, count), on at most `threads` threads.
/// Which thread takes which range is not defined: bodies write disjoint results or integer sums, so
/// that the outcome does not depend on the number of threads. The first exception is rethrown.
/// Where a thread cannot be had, the others do its work.
void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body);

/// The same with body(index) for each index.
template <class Body>
void parallel_for_each(int threads, int64_t count, int64_t grain, const Body& body) {
  parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Returns a grain of at most `most` that leaves each thread 32 ranges, where there are so many:
/// the range that is taken last keeps the other threads waiting.
constexpr int64_t fair_grain(int threads, int64_t count, int64_t most) {
  const int64_t share = count / (int64_t{32} * (threads > 1 ? threads : 1));
  return share < 1 ? 1 : share < most ? share : most;
}

/// Starts what parallel_for needs for `threads` threads at once, the calling one included. From now
/// on loops of several callers share them: a loop is helped by those that no other one has. Throws
/// MemoryError that says how many could be had.
void start_threads(int threads);

/// "out of threads: 8 needed, 3 possible (...)", with the limits that count and what to do. 0
/// needed: one more, whatever the number.
std::string out_of_threads_text(int needed, int possible);

}  // namespace larch
