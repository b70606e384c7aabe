// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/plan.h"
#include "larch/pipeline/levelset/segmentation_batch.h"

namespace larch::pipeline {

/// What segment_image would do, from headers and the label map to start from: all that it refuses
/// before it reads the voxels of the image, the memory and the files. Throws as it would.
Plan plan_segmentation(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const CaseWriter& writer, const Context& context);

/// The same for a batch. A case that would fail is a problem of the plan.
Plan plan_segmentation_batch(const SegmentationBatch& batch, const levelset::LevelsetConfig& config,
                             const CaseWriter& writer, const Context& context);

}  // namespace larch::pipeline
