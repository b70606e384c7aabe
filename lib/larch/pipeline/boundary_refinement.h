// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/models.h"

namespace larch::pipeline {

/// The files that a refinement can write.
inline constexpr cases::Product kBoundaryProducts[] = {
    {"output,o", "mesh", ".vtk", PathRole::kOutputMesh,
     "the surface (LPS mm); of a model of several structures all of them, and each in "
     "NAME.class-LABEL.vtk; .vtk and .ply have probability and displacement_mm of each vertex"},
    {"labelmap", "labelmap", ".nii.gz", PathRole::kOutputLabelmap,
     "the voxels inside, on the grid of the input", ".tsv"},
    {"color-table", "table", ".ctbl", PathRole::kOutputColours,
     "names and colours of the labels for 3D Slicer (.ctbl), or as BIDS (.tsv)"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of three slices with the start in white and the result in colour (.png)"}};

/// The column of a list with meshes to start from, beside label and kPosesColumn.
inline constexpr const char* kMeshStart = "mesh";

/// The files of a start; one of them is given.
struct StartFiles {
  std::string poses, labels, mesh;
};

/// Reads the image of a case and its start (of a list, the one in its columns) and refines the
/// mesh of each structure: the files that are wanted, with figures. Where the model is less sure
/// than of what counts as found, starts near the given one are tried. Of several structures those
/// that are not found, or that the start lacks, are left out with a message. Rejected if none is
/// found. Throws InputError, MemoryError.
Outputs refine_case(const cases::CaseJob& c, const Model& model, const StartFiles& start);

/// Reads the start of a case, and throws what the refinement would throw because of it; the image
/// is looked at by its header.
void check_start(const cases::CaseJob& c, const Model& model, const StartFiles& start);

/// Looks at the header of the image, and says what memory the refinement takes.
cases::CaseLook look_at_boundary(const cases::CaseJob& c, const Model& model,
                                 const StartFiles& start);

}  // namespace larch::pipeline
