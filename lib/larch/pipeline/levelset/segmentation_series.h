// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/plan.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// Throws UsageError unless the files are what a series writes: label maps alone, as NIfTI.
void check_series(const SegmentationFiles& files, bool has_frame);

/// Segments all frames of a 4-D image, each from the surfaces and with the windows of the one
/// before it, to a label map of four axes. Throws as segment_image does, InputError for an image of
/// one frame.
Outputs segment_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context);

/// What it would do, from headers.
Plan plan_series(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                 const Context& context);

}  // namespace larch::pipeline
