// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/levelset/segment.h"

namespace larch::levelset {

/// Makes the fields of a run and all that is resolved on the way; throws as start_segmentation.
void prepare_fields(SegmentRun& run, const Context& context);

/// D of a field of a run as it is stored, with the means that the field has.
Volume<int16_t> data_speed_of(const SegmentRun& run, size_t f, int threads);

/// The means inside and outside of a field, by the configuration of its run.
RegionMeans region_means_of(const SegmentRun& run, size_t f, const Volume<float>& phi, int threads);

}  // namespace larch::levelset
