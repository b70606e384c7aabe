// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "larch/angiography.h"
#include "larch/data/vec.h"

// What is decided about a sequence before its frames are subtracted.

namespace larch::dsa {

// When contrast agent arrives in a sequence whose frames are subtracted from an early one.

/// How far the most extreme places of a subtracted frame lie from what is around them, in grey
/// values, both positive: motion makes as many of them darker as brighter, contrast agent darker.
struct Extremes {
  double dark = 0, bright = 0;
};

/// The frame is made smaller, to about 128 cells along its shorter side, by the mean of the pixels
/// that count; the median of the 13 x 13 cells around is taken off; and the means of the darkest
/// and of the brightest 2 in 1000 cells (8 at least) are the extremes. Cells within three of one
/// of which less than half counts are left out: edges of collimators move apart from the body.
/// `difference`: grey values with vessels dark; `validity`: Validity by pixel, of which saturated
/// pixels and those outside do not count. 0 where no cell is left.
Extremes extremes_of(std::span<const int16_t> difference, std::span<const uint8_t> validity,
                     const Vec3i& size);

/// Returns the first of `frames`, which follow each other, whose dark extreme is more than 1.25
/// times the bright one and stays so: in 8 of the ten frames from it on, or of those to the last
/// one, two at least. Nothing if there is no such frame. `are_all`: no frames follow.
std::optional<size_t> find_onset(std::span<const Extremes> frames, bool are_all);

/// Returns what is made of each frame: what is wanted, and what measuring it takes.
SequenceWants made_of_frames(const SequenceRequest& request);

/// Fills all but `batches`. Some frames are read for the collimator; where the onset of contrast
/// agent is looked for, frames are subtracted up to ten after it.
PreparedSequence prepare_sequence(const SequenceRequest& request, const Context& context);

/// Returns the input of a mask but for its frames.
MaskInput mask_input(const SequenceRequest& request, const PreparedSequence& prepared);

}  // namespace larch::dsa
