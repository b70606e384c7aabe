// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/step/step_lanes.h"

#include <cmath>

namespace larch::levelset::cpu {
namespace {

typedef float F8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

F8 blend(I8 mask, F8 yes, F8 no) {
  return (F8)(((I8)yes & mask) | ((I8)no & ~mask));
}
F8 square_root(F8 value) {
  for (int i = 0; i < kBrick; ++i) value[i] = std::sqrt(value[i]);
  return value;
}
/// Bit i: lane i of a comparison.
uint32_t bits_of(I8 mask) {
  uint32_t bits = 0;
  for (int i = 0; i < kBrick; ++i) bits |= (static_cast<uint32_t>(mask[i]) & 1U) << i;
  return bits;
}
F8 to_float(const int16_t* at) {
  F8 values;
  for (int i = 0; i < kBrick; ++i) values[i] = static_cast<float>(at[i]);
  return values;
}
I8 is_frozen(const int16_t* speed) {
  I8 mask;
  for (int i = 0; i < kBrick; ++i) mask[i] = speed[i] == kFrozen ? -1 : 0;
  return mask;
}

#include "larch/levelset/step/step_lanes.inc"

}  // namespace

const StepLanes kPortableStepLanes{"portable", step_brick};

std::span<const StepLanes> all_step_lanes() {
#ifdef __x86_64__
  static const StepLanes sets[] = {kPortableStepLanes, kAvx2StepLanes};
  return {sets, __builtin_cpu_supports("avx2") ? size_t{2} : size_t{1}};
#else
  return {&kPortableStepLanes, 1};
#endif
}

const StepLanes& step_lanes() {
  static const StepLanes best = all_step_lanes().back();
  return best;
}

}  // namespace larch::levelset::cpu
