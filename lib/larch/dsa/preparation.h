// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/angiography.h"

// What is decided about a sequence before its frames are subtracted.
namespace larch::dsa {

/// Fills all but `batches`. Some frames are read for the collimator; where the onset of contrast
/// agent is looked for, frames are subtracted up to ten after it.
PreparedSequence prepare_sequence(const SequenceRequest& request, const Context& context);

/// The input of a mask but for its frames.
MaskInput mask_input(const SequenceRequest& request, const PreparedSequence& prepared);

}  // namespace larch::dsa
