// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "larch/data/rgb_image.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// Parameters as they were used (`config`: of the request), what became of each label, and what its
/// iterations did.
nlohmann::ordered_json segmentation_report(const levelset::SegmentResult& result,
                                           const levelset::LevelsetConfig& config);

/// Active and changed voxels of all labels over the iterations. A brick counts as its voxels.
RgbImage segmentation_plot(const levelset::SegmentResult& result, levelset::Tracker tracker,
                           const std::string& name);

/// The files and figures of a finished job; `by_label`: those of each label too. Rejected if no
/// voxel is inside.
Outputs segmentation_outputs(const cases::CaseJob& c, bool by_label,
                             const std::shared_ptr<const SegmentationJob>& job);

}  // namespace larch::pipeline
