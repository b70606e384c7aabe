// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/cases/case_list.h"
#include "larch/data/volume.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {

/// Returns the classes of cases whose labels are folders with a mask, or a closed surface, for each
/// structure: the names of the files without endings, in the order of their bytes, as labels 1, 2,
/// ..., the same in all cases. None where labels are files. Throws InputError where they are
/// folders in some cases alone, and for a folder without masks or with two of one name.
std::vector<DatasetLabel> classes_of_masks(const std::vector<Case>& cases);

/// Reads the labels of a case on the grid of its image: a label map; a closed surface, whose inside
/// is label 1; or a folder of masks, which are the labels of `classes` by their names. Voxels of
/// two masks get the first one by name, with a warning; where they are more than a tenth of a
/// structure it is an error. A warning names classes without a file.
///
/// Throws InputError: what read_labels and read_mesh throw, another grid, a mask with several
/// values, a surface that is not closed or encloses no voxel.
LabelVolume read_case_labels(const Case& c, const Grid& grid,
                             const std::vector<DatasetLabel>& classes, const ReadOptions& image);

}  // namespace larch::pipeline
