// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// The frames of the 4-D image of a case. Throws InputError if there is but one.
int frames_of_series(const cases::CaseJob& c);

/// Throws UsageError unless the case writes a label map that can have four axes, and nothing else.
void check_series(const cases::CaseJob& c);

/// Segments all frames of a 4-D image, each from the surfaces and with the windows of the one
/// before it; a label of which nothing is left stays away. Rejected if that happens.
Outputs segment_series(const cases::CaseJob& c, const SegmentationRequest& request);

}  // namespace larch::pipeline
