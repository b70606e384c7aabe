// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/match/block_grid.h"

// The dense field as a uniform cubic B-spline through the vectors of blocks: its second derivatives
// are continuous, where those of the bilinear field jump at every centre. M. Unser, Splines: a
// perfect fit for signal and image processing, IEEE Signal Processing Magazine 16(6), 1999.
namespace larch::dsa {

/// A block per pixel: the dense field between vectors of this grid is the vectors themselves.
BlockGrid pixel_grid(const Vec3i& size);

/// Vectors (Q16) at all pixels, frame after frame, of the spline through those of blocks.
/// `vectors`: by frame and block of `grid`. Beyond the outermost centres the spline goes through
/// vectors one step of the grid apart, all of them the outermost one (BorderField::kClamp), zero
/// (kZero) or that of the outermost slope one step away (kLinear). Centres are taken as evenly
/// spaced, which they are but for half a pixel. In whole numbers, on the processor's cores: the
/// same for every device and number of threads.
std::vector<Vec3i> spline_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                                BorderField border, const Context& context);

/// The least Jacobian of x + d(x) by differences of neighbouring pixels of one frame.
double least_jacobian_of_pixels(const Vec3i& size, std::span<const Vec3i> vectors);

}  // namespace larch::dsa
