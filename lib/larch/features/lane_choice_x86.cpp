// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/lane_kernels.h"

namespace larch::features::cpu {

std::span<const LaneKernels> all_lane_kernels() {
  static const LaneKernels sets[] = {kPortableKernels, kAvx2Kernels};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
}

const LaneKernels& lane_kernels() {
  static const LaneKernels best = all_lane_kernels().back();
  return best;
}

}  // namespace larch::features::cpu
