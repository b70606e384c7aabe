// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/step/step_lanes.h"

namespace larch::levelset::cpu {

std::span<const StepLanes> all_step_lanes() {
  static const StepLanes sets[] = {kPortableStepLanes, kAvx2StepLanes};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
}

const StepLanes& step_lanes() {
  static const StepLanes best = all_step_lanes().back();
  return best;
}

}  // namespace larch::levelset::cpu
