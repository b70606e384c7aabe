// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"

// Flexible pixel shift: US 2008/0037845, 0104 to 0106. A node of the field is moved while all
// others stay, and every pixel up to the next nodes follows as the dense field between them does.
namespace larch::dsa {

/// Nodes as blocks of one pixel, from the first to the last pixel along each axis, at most `pitch`
/// pixels apart: the dense field between them has no border.
BlockGrid make_node_grid(const Vec3i& size, int32_t pitch);

/// Holds what moving nodes takes, all of it on the host.
struct FlexibleJob {
  Metric metric = Metric::kEhd;
  const BlockGrid* nodes = nullptr;    ///< by make_node_grid
  const uint16_t* mask = nullptr;      ///< unfiltered samples; sampled between pixels from here
  const uint16_t* contrast = nullptr;  ///< frame after frame, by filter_at_zero
  int64_t frames = 0;
  const int32_t* bin_shift = nullptr;  ///< per frame
  Vec3i* vectors = nullptr;            ///< by frame and node, Q16: where nodes start, and end
  BlockMatch* matches = nullptr;       ///< by frame and node; nodes whose flags hold kBlockOutside
                                       ///< or kBlockUnreliable are not moved
};

/// Moves nodes so that the differences within the next nodes around them are most alike: by whole
/// pixels in conjugate directions, then by tenths of a pixel, then to the top of a quadratic. Nodes
/// are visited in four groups (even and odd along each axis), in which none sees another: results
/// depend on no order or number of threads. A node that wants to move by two pixels or whose pixels
/// hardly count becomes unreliable or outside.
void flexible_shift(const FlexibleJob& job, const Context& context);

}  // namespace larch::dsa
