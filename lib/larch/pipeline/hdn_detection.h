// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/models.h"

namespace larch::pipeline {

/// The files that a detection of poses can write.
inline constexpr cases::Product kPoseProducts[] = {
    {"output,o", "poses", ".poses.json", PathRole::kOutputFile,
     "poses, their status and confidence (JSON, LPS mm)"},
    {"markups", "markups", ".mrk.json", PathRole::kOutputFile,
     "box and long axis of each structure for 3D Slicer (.mrk.json)"},
    {"labelmap", "labelmap", ".nii.gz", PathRole::kOutputLabelmap,
     "the boxes on the grid of the input, numbered from 1 in the order of the model", ".tsv"},
    {"color-table", "table", ".ctbl", PathRole::kOutputColours,
     "names and colours of the labels for 3D Slicer (.ctbl), or as BIDS (.tsv)"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of the slices through each structure with its box (.png)"}};

/// Reads the image of a case and looks for all structures: the files that are wanted, with figures
/// and a report of each structure. Rejected if none has a pose or, where `strict`, if one has none.
/// Throws InputError, MemoryError.
Outputs detect_poses(const cases::CaseJob& c, const Model& network, bool strict);

/// Looks at the header of the image, and says what memory the detection takes.
cases::CaseLook look_at_poses(const cases::CaseJob& c, const Model& network);

}  // namespace larch::pipeline
