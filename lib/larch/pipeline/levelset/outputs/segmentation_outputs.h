// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "larch/levelset/segment.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// The level set of all structures together, in mm: negative inside of any.
Volume<float> level_set_of_all(const levelset::SegmentResult& result);

/// The distance of every voxel from the outermost voxels of the structures in mm, negative inside
/// (larch/filters/distance.h); the diagonal of the image where there is no such voxel, negative if
/// all is inside.
Volume<float> distance_of_all(const levelset::SegmentResult& result, int threads);

/// The files and figures of a finished job; `by_label`: those of each label too. Rejected if no
/// voxel is inside.
Outputs segmentation_outputs(const cases::CaseJob& c, bool by_label,
                             const std::shared_ptr<const SegmentationJob>& job);

}  // namespace larch::pipeline
