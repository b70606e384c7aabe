// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "larch/cases/case_program.h"
#include "larch/config/fields.h"
#include "larch/mesh/smooth.h"
#include "larch/models/model_file.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/regularise/graph_cut.h"

namespace larch::pipeline {

/// The files that a detection can write.
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
     "TSV of the most probable voxels"},
    {"distribution", "distribution", ".distribution.nii.gz", PathRole::kOutputFile,
     "decision forest: probability of each class, the volumes of one file (.nii, .nii.gz)"},
    {"leaves", "leaves", ".leaves.nii.gz", PathRole::kOutputFile,
     "decision forest: leaf that each tree leads a voxel to, the volumes of one file (.nii, "
     ".nii.gz)"}};

/// From probability to labels.
struct StructureConfig {
  std::optional<double> threshold{};
  bool regularise = true;
  regularise::GraphCutConfig graph_cut;
  int keep_components = 1;
  bool fill_holes = true;
  int64_t min_voxels = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"threshold", threshold,
            "probability from which a voxel is the class; null: the model's, which was the best on "
            "its held-out volumes, or 0.5",
            0.001, 0.999},
      Field{"regularise", regularise, "minimise surface area by graph cuts; false: threshold only"},
      Field{"graph_cut", graph_cut, "the regularisation"},
      Field{"keep_components", keep_components,
            "largest connected components to keep, for each class; 0: all of them", 0, 1000},
      Field{"fill_holes", fill_holes, "fill enclosed background"},
      Field{"min_voxels", min_voxels, "fewer voxels than this count as no detection", 0,
            1000000000000});
  }
};

/// All settings of pbt-detect.
struct DetectConfig {
  pbt::EvaluateConfig evaluate;
  pbt::ProbabilityType probability_type = pbt::ProbabilityType::kFloat32;
  StructureConfig structure;
  mesh::SmoothConfig smooth;
  int candidate_count = 100;
  int leaf_trees = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"evaluate", evaluate, "how the tree is evaluated"},
      Field{"probability_type", probability_type, "float32, uint16 (x 65535) or uint8 (x 255)"},
      Field{"structure", structure, "from probabilities to labels"},
      Field{"smooth", smooth, "smoothing of the surface mesh"},
      Field{"candidate_count", candidate_count, "length of the candidate list", 1, 100000000},
      Field{"leaf_trees", leaf_trees, "leaves of the first trees alone; 0: of all", 0, 1024});
  }
};

/// The request for one detection.
struct DetectionRequest {
  const DetectConfig& config;
  std::string roi{};         ///< mask on the grid of the image; empty: everywhere
  int64_t memory_bytes = 0;  ///< of the evaluation; 0: most of what is free
};

/// Reads the image of a case and detects on it: the files that are wanted, with figures; volumes
/// are on the grid of the image. Rejected if fewer than structure.min_voxels voxels are found.
/// Throws InputError, also if the region of interest is on another grid, and MemoryError.
Outputs detect_case(const cases::CaseJob& c, const DetectionRequest& request,
                    const models::VoxelModel& model);

/// Throws UsageError for settings and products that a model of this kind does not have, or a file
/// of several volumes that does not end so.
void check_for(const models::VoxelModel& model, const std::vector<CaseOutput>& files,
               const DetectConfig& config);

/// Looks at the header of the image, and says what memory the evaluation takes.
cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionRequest& request,
                                  const models::VoxelModel& model);

}  // namespace larch::pipeline
