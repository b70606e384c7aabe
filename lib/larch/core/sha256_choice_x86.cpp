// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>

#include "larch/core/sha256_blocks.h"

namespace larch::detail {
namespace {

/// __builtin_cpu_supports does not know them.
bool has_sha_instructions() {
  constexpr unsigned kFeatures = 7, kShaBit = 29;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (b >> kShaBit & 1) != 0;
}

}  // namespace

std::span<const Sha256Blocks> all_sha256_blocks() {
  static constexpr Sha256Blocks kAll[] = {sha256_blocks_portable, sha256_blocks_x86};
  static const size_t count =
      __builtin_cpu_supports("sse4.1") && has_sha_instructions() ? size_t{2} : size_t{1};
  return std::span(kAll).first(count);
}

}  // namespace larch::detail
