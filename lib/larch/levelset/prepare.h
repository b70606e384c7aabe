// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/levelset/segment.h"

namespace larch::levelset {

/// Makes the fields of a run and all that is resolved on the way; throws as start_segmentation.
void prepare_fields(SegmentRun& run, const Context& context);

}  // namespace larch::levelset
