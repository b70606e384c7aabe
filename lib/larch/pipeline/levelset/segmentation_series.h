// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/plan.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// Throws UsageError unless the files are what a series writes: label maps alone, as NIfTI.
/// `has_more`: --frame or --keep-checkpoint is given, which is refused.
void check_series(const SegmentationFiles& files, bool has_more);

/// Segments all frames of a 4-D image, each from the surfaces and with the windows of the one
/// before it, to a label map of four axes. Throws as segment_image does, InputError for an image of
/// one frame, and ResultError, which names the frame, where nothing is left. With a checkpoint:
/// Stopped is thrown after it is written; it has the finished frames, and what the one is that was
/// moved. It goes on with the same settings alone, those of the end included.
Outputs segment_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context);

/// What it would do, from headers.
Plan plan_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                 const Context& context);

}  // namespace larch::pipeline
