// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "larch/data/vec.h"
#include "larch/learning/calibration.h"

namespace larch::boundary {

struct Model;
struct Refined;

/// Tells a mesh on the boundary of the structure from one elsewhere; more is worse. At the vertices
/// in the image, unless they are fewer than half: mean of -ln p, and share without a boundary. Of
/// the shape: mean deviations of the modes, distance from all shapes of the modes (mm), and |ln of
/// the size by that of the mean|.
constexpr size_t kMeasures = 5;
using Measures = std::array<double, kMeasures>;
Measures measures_of(const Model& model, const Refined& refined);

/// How a model knows whether it is in the right place; made of results of cases that were held out.
struct Confidence {
  std::vector<double> usual{}, deviations{};  ///< of right results, by measure; none: not known
  learning::Calibration calibration{};        ///< of minus the sum of the deviations that are worse

  bool is_known() const { return !usual.empty(); }
  /// The probability that a result is right.
  double operator()(const Measures& measures) const;
};
/// Not known with fewer than ten right or five wrong results.
Confidence learn_confidence(std::span<const Measures> right, std::span<const Measures> wrong);

/// Tells whether it is one that learn_confidence can give.
bool is_valid(const Confidence& confidence);

}  // namespace larch::boundary
