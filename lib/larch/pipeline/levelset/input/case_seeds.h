// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/io/table/case_list.h"
#include "larch/pipeline/levelset/input/segmentation_seeds.h"

namespace larch::pipeline {

/// What a case of a list starts from: `for_all`, the label map in the column `label`, and the
/// spheres in the columns `sphere_mm` and `sphere_index`, each "x,y,z,radius" with a label as 5th
/// number if it is not 1, several parted by semicolons. Cells that are empty or "n/a" hold none.
/// Throws InputError, which names the case and the column, for what is no such list.
SegmentationSeeds seeds_of_case(SegmentationSeeds for_all, const Case& c);

}  // namespace larch::pipeline
