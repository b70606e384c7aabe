// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/similarity/entropy.h"

#include <algorithm>
#include <cmath>

namespace larch::dsa {

std::vector<uint64_t> entropy_terms(uint32_t most) {
  std::vector<uint64_t> terms(static_cast<size_t>(most) + 1, 0);
  for (uint32_t h = 2; h <= most; ++h) {
    terms[h] = static_cast<uint64_t>(std::floor(1048576.0 * h * std::log(h) + 0.5));
  }
  return terms;
}

int32_t lower_median(std::vector<int32_t>& differences) {
  if (differences.empty()) return 0;
  const auto middle = differences.begin() + static_cast<ptrdiff_t>((differences.size() - 1) / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

}  // namespace larch::dsa
