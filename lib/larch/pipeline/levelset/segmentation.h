// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "larch/cases/case_program.h"
#include "larch/data/rgb_image.h"
#include "larch/levelset.h"
#include "larch/pipeline/levelset/segmentation_seeds.h"

namespace larch::pipeline {

/// The files that a segmentation can write.
inline constexpr cases::Product kSegmentationProducts[] = {
    {"output,o", "labels", ".nii.gz", PathRole::kOutputLabelmap,
     "label map on the grid of the input"},
    {"level-set", "level-set", ".phi.nii.gz", PathRole::kOutputImage,
     "level set in mm, negative inside"},
    {"distance", "distance", ".distance.nii.gz", PathRole::kOutputImage,
     "signed distance to the surface in mm, negative inside"},
    {"mesh", "mesh", ".vtk", PathRole::kOutputMesh,
     "surface: .vtk, .vtp, .obj, .ply, .stl (LPS mm) or .gii (RAS mm)"},
    {"qc", "qc", ".png", PathRole::kOutputPicture,
     "picture of three slices with the contour (.png)"},
    {"plot", "plot", ".plot.png", PathRole::kOutputPicture,
     "picture of active and changed voxels over the iterations (.png)"}};

/// The request for a segmentation, whatever the case.
struct SegmentationRequest {
  const SegmentationSeeds& seeds;  ///< of all images; a row of a list adds its own
  const levelset::LevelsetConfig& config;
  /// Level set, distance and mesh are written for each label as well, as <name>.label2<ending>.
  bool by_label = false;
  /// All frames of a 4-D image are segmented, each from the surfaces of the last.
  bool is_series = false;
};

/// Throws UsageError for settings and files that contradict each other, InputError for a case that
/// has nothing to start from. `names`: resolved, of all inputs and outputs of the run; none of them
/// may be the file of a label.
void check_segmentation_names(const cases::CaseJob& c, const SegmentationRequest& request,
                              const std::set<std::string>& names);

/// Reads and segments the image of a case, or all frames of a series, each from the surfaces and
/// with the windows of the one before it: the files that are wanted, with figures. Rejected if a
/// label vanishes, which in a series then stays away.
Outputs segment_case(const cases::CaseJob& c, const SegmentationRequest& request);

/// Checks by the headers that seeds lie in the image, images on its grid, and the time step is
/// stable. Throws what segment_case would throw.
cases::CaseLook look_at_segmentation(const cases::CaseJob& c, const SegmentationRequest& request);

// Defined in segmentation_outputs.cpp.

/// An image that is segmented, with the seconds that its reading took.
struct SegmentationJob {
  levelset::SegmentRequest request{};
  levelset::SegmentResult result{};
  LabelTable names{};  ///< those of the segments to start from
  StepSeconds seconds{};
};

/// Parameters as they were used (`config`: of the request), what became of each label, and what its
/// iterations did.
nlohmann::ordered_json segmentation_report(const levelset::SegmentResult& result,
                                           const levelset::LevelsetConfig& config);

/// Active and changed voxels of all labels over the iterations. A brick counts as its voxels.
RgbImage segmentation_plot(const levelset::SegmentResult& result, const std::string& name);

/// Returns the files and figures of a finished job; `by_label`: those of each label too. Rejected
/// if no voxel is inside.
Outputs segmentation_outputs(const cases::CaseJob& c, bool by_label,
                             const std::shared_ptr<const SegmentationJob>& job);

}  // namespace larch::pipeline
