// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/data/grid.h"

namespace larch {

/// A triangle surface. Vertices are LPS mm; triangles are counter-clockwise seen from outside.
struct Mesh {
  std::vector<Vec3d> vertices_mm;
  std::vector<Vec3i> triangles;
  WorldFrame frame = WorldFrame::kScanner;  ///< that of the image it was made from
};

/// A word of a terminology: of SNOMED CT, whose scheme DICOM calls "SCT", or another. Empty: none.
struct Code {
  std::string scheme, value, meaning;
};

/// One row of a label table.
struct LabelEntry {
  int32_t value = 0;
  std::string name;
  uint8_t rgb[3] = {0, 0, 0};
  Code code{};      ///< what it is: "Liver"
  Code category{};  ///< of what kind that is: "Anatomical Structure"
};
using LabelTable = std::vector<LabelEntry>;

/// Points in space: seeds, landmarks, centres of candidates.
/// Invariant kept by its makers: names is empty or has one name for each point.
struct PointSet {
  std::vector<Vec3d> points_mm;  ///< LPS mm
  std::vector<std::string> names{};
  WorldFrame frame = WorldFrame::kScanner;  ///< that of the image they were found in
};

}  // namespace larch
