// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/cases/case_program.h"
#include "larch/pipeline/detection/pbt_detection.h"

namespace larch::pipeline {

/// What a detection can write.
inline constexpr cases::Product kDetectionProducts[] = {
    {"output,o", "labels", ".nii.gz", PathRole::kOutputLabelmap,
     "label map on the grid of the input", ".tsv"},
    {"probability", "probability", ".probability.nii.gz", PathRole::kOutputImage,
     "probability map on the grid of the input"},
    {"mesh", "mesh", ".vtk", PathRole::kOutputMesh,
     "surface: .vtk, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of three slices with the contour (.png)"},
    {"candidates", "candidates", ".candidates.tsv", PathRole::kOutputFile,
     "TSV of the most probable voxels"}};

/// What one detection is asked for.
struct DetectionRequest {
  const DetectConfig& config;
  std::string roi{};         ///< mask on the grid of the image; empty: everywhere
  int64_t memory_bytes = 0;  ///< of the evaluation; 0: most of what is free
};

/// Reads the image of a case and detects on it: the files that are wanted, with figures. Rejected
/// if fewer than structure.min_voxels voxels are found. Throws InputError; also if the region of
/// interest is on another grid.
Outputs detect_case(const cases::CaseJob& c, const DetectionRequest& request,
                    const pbt::Model& model);

/// The header of the image, and whether the evaluation fits.
cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionRequest& request,
                                  const pbt::Model& model);

}  // namespace larch::pipeline
