// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/features/tap.h"
#include "larch/learning/weak_math.h"
#include "larch/tree/tree_math.h"

namespace larch::pbt {

/// A weak classifier as the evaluators read it.
struct WeakRecord {
  int32_t first_tap = 0;
  uint16_t n_tap = 0;
  uint16_t channel = 0;
  learning::CodeMap codes;
  learning::BinMap bins;
  uint16_t unused = 0;
  int32_t alpha = 0;  ///< Q20
  uint64_t mask = 0;
};

/// A compiled tree for one layout of the integral volumes; the pointers are of one device.
struct TreeView {
  const tree::NodeRecord* nodes = nullptr;
  const WeakRecord* weaks = nullptr;
  const features::LinearTap* taps = nullptr;
  const uint32_t* logistic = nullptr;
  const int32_t* rest = nullptr;  ///< per weak: sum of the alphas that follow it in its node
  tree::Thresholds thresholds;
  int32_t node_count = 0;
  int32_t depth = 0;
  int32_t early_rejection = 0;
};

}  // namespace larch::pbt
