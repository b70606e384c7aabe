// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace larch {

/// Calls body(begin, end) on disjoint ranges that cover [0, count), on at most `threads` threads.
/// Which thread takes which range is not defined: bodies write disjoint results or integer sums, so
/// that the outcome does not depend on the number of threads. The first exception is rethrown.
void parallel_for(int threads, int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace larch
