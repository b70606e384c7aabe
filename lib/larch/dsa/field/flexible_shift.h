// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "larch/core/context.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"

// Flexible pixel shift: US 2008/0037845, 0104 to 0106. A node of the field is moved while all
// others stay, and every pixel up to the next nodes follows as the dense field between them does.
namespace larch::dsa {

/// Nodes as blocks of one pixel, from the first to the last pixel along each axis, at most `pitch`
/// pixels apart: the dense field between them has no border.
BlockGrid make_node_grid(const Vec3i& size, int32_t pitch);

/// Moves nodes so that the differences within the next nodes around them are most alike: by whole
/// pixels in conjugate directions, then by tenths of a pixel, then to the top of a quadratic. Nodes
/// are visited in four groups (even and odd along each axis), in which none sees another: results
/// depend on no order or number of threads. A node that wants to move by two pixels or whose pixels
/// hardly count becomes unreliable or outside.
///
/// `job`: of blocks, but for its grid, by make_node_grid, and `out`, by frame and node: nodes whose
/// flags hold kBlockOutside or kBlockUnreliable are not moved. `vectors`: by frame and node, Q16,
/// where nodes start, and end. All of it on the host.
void flexible_shift(const MatchJob& job, std::span<Vec3i> vectors, const Context& context);

}  // namespace larch::dsa
