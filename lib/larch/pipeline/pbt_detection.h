// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/detect.h"
#include "larch/pipeline/case_poses.h"

namespace larch::pipeline {

/// The files that a detection can write.
inline constexpr cases::Product kDetectionProducts[] = {
    {"output,o", "labels", ".nii.gz", PathRole::kOutputLabelmap,
     "label map on the grid of the input", ".tsv"},
    {"probability", "probability", ".probability.nii.gz", PathRole::kOutputImage,
     "probability map on the grid of the input"},
    {"mesh", "mesh", ".vtk", PathRole::kOutputMesh,
     "surface: .vtk, .vtp, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
    {"color-table", "table", ".ctbl", PathRole::kOutputColours,
     "names and colours of the labels for 3D Slicer (.ctbl), or as BIDS (.tsv)"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of three slices with the contour (.png)"},
    {"candidates", "candidates", ".candidates.tsv", PathRole::kOutputFile,
     "TSV of the most probable voxels"},
    {"distribution", "distribution", ".distribution.nii.gz", PathRole::kOutputFile,
     "decision forest: probability of each class, the volumes of one file (.nii, .nii.gz)"},
    {"leaves", "leaves", ".leaves.nii.gz", PathRole::kOutputFile,
     "decision forest: leaf that each tree leads a voxel to, the volumes of one file (.nii, "
     ".nii.gz)"}};

/// The request for one detection.
struct DetectionFiles {
  const DetectConfig& config;
  std::string roi{};         ///< of one image: mask on its grid; empty: everywhere
  InputList poses{};         ///< of one image: file with the boxes of structures
  int64_t memory_bytes = 0;  ///< of the evaluation; 0: most of what is free
};

/// The column of a list with masks.
inline constexpr const char* kRoiColumn = "roi";

/// Reads the image of a case and detects on it: the files that are wanted, with figures; volumes
/// are on the grid of the image. Rejected if fewer than structure.min_voxels voxels are found.
/// A structure of the model is looked for in its box alone, if there are poses; a note tells which
/// one is not. Throws InputError, also if the region of interest is on another grid or the poses
/// have no structure of the model, and MemoryError.
Outputs detect_case(const cases::CaseJob& c, const DetectionFiles& request, const Model& model);

/// Throws UsageError for settings and products that a model of this kind does not have, or a file
/// of several volumes that does not end so.
void check_for(const Model& model, const std::vector<CaseOutput>& files,
               const DetectConfig& config);

/// Looks at the header of the image, and says what memory the evaluation takes.
cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionFiles& request,
                                  const Model& model);

}  // namespace larch::pipeline
