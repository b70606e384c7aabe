// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/config/fields.h"
#include "larch/learning/weak_math.h"

namespace larch::learning {

/// The weak classifiers of Birkbeck, Sofka, Zhou 2011, section 3.1: votes over a histogram of the
/// feature's values, or a threshold. They differ in training only.
enum class WeakKind : uint8_t { kHist64 = 0, kThreshold = 1 };
constexpr auto enum_names(WeakKind*) {
  return std::to_array<EnumName<WeakKind>>(
      {{WeakKind::kHist64, "hist64"}, {WeakKind::kThreshold, "threshold"}});
}

/// A thresholded feature: 64 votes over the bins of its value (Birkbeck et al., section 3.1; a
/// simple threshold is the special case of a mask with ones on one side).
struct WeakClassifier {
  uint32_t feature = 0;  ///< column of the feature source, or index into the features of a model
  CodeMap codes;
  BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};

}  // namespace larch::learning
