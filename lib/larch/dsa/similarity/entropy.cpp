// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/similarity/entropy.h"

#include <cmath>

namespace larch::dsa {

std::vector<uint64_t> entropy_terms(uint32_t most) {
  std::vector<uint64_t> terms(static_cast<size_t>(most) + 1, 0);
  for (uint32_t h = 2; h <= most; ++h) {
    terms[h] = static_cast<uint64_t>(std::floor(1048576.0 * h * std::log(h) + 0.5));
  }
  return terms;
}

}  // namespace larch::dsa
