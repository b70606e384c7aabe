// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// Lets the motion of a picture fade to the shift of its frame outside of the region of interest:
/// of the blocks that were not searched and have been filled from their neighbours, those that are
/// not beside one that was searched (along axes and diagonals) take the shift, since nothing is
/// known of the motion there; between both the dense field goes over from one to the other.
/// `shift`: Q16. `frame`: by block of `grid`; of a frame without any vector that was found nothing
/// changes, since it is not moved.
void fade_outside(const BlockGrid& grid, const Vec3i& shift, std::span<BlockMatch> frame);

}  // namespace larch::dsa
