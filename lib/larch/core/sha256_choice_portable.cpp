// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/sha256_blocks.h"

namespace larch::detail {

std::span<const Sha256Blocks> all_sha256_blocks() {
  static constexpr Sha256Blocks kAll[] = {sha256_blocks_portable};
  return kAll;
}

}  // namespace larch::detail
