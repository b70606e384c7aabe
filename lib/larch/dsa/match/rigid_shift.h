// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/context.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace larch::dsa {

/// Returns the translation of whole frames, Q16 pixels, which pulls as those of blocks do: what is
/// done by hand in the clinic. By EHD whatever the metric of blocks: over all displacements of up
/// to 16 pixels of frames made four times smaller, then whole pixels around the best, then fifths
/// of a pixel around the best of these and the top of a quadratic around the best of those. Of
/// large frames every second, third... row is compared.
///
/// `mask`, `contrast`: samples; `mask_at_zero`, `contrast_at_zero`: by filter_at_zero; all on the
/// context's device. Frames of less than 16 pixels along an axis do
/// not move.
std::vector<Vec3i> rigid_shifts(const uint16_t* mask, const uint16_t* mask_at_zero,
                                const SampleFrames& contrast, const SampleFrames& contrast_at_zero,
                                const SampleTable& table, const DsaConfig& config,
                                const Context& context);

}  // namespace larch::dsa
