// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/data/grid.h"

namespace larch {

/// Points in space: seeds, landmarks, centres of candidates.
/// Invariant kept by its makers: names is empty or has one name for each point.
struct PointSet {
  std::vector<Vec3d> points_mm;  ///< LPS mm
  std::vector<std::string> names{};
  WorldFrame frame = WorldFrame::kScanner;  ///< that of the image they were found in
};

}  // namespace larch
