// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace larch::dsa {

/// round(2^20 h ln h) for h = 0 to `most`: what Ranking sums, made once on the host, since no two
/// devices need agree about logarithms. T[0] is 0.
std::vector<uint64_t> entropy_terms(uint32_t most);

/// The lower median of differences, in whose order nothing is left; 0 of none.
int32_t lower_median(std::vector<int32_t>& differences);

}  // namespace larch::dsa
