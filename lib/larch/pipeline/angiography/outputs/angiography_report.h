// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "larch/dsa/sequence.h"

// The blocks of a subtraction in reports: their numbers, and the grid of vectors as CSV.
namespace larch::pipeline {

/// The first line of the grid: frame (as in the file, counted from 0), block (i, j, of volumes k),
/// its centre, vector and vector before repair in pixels, similarity at the start vector and at the
/// vector found (EHD or entropy), confidence, pixels that count, share of them beyond the bins, and
/// status: ok, replaced (by its neighbours), unreliable (its vector is that of its neighbours too)
/// or outside.
std::string grid_header(bool is_volume);

/// The lines of the blocks of one frame. The same numbers are the same text on every machine.
std::string grid_rows(int frame, const dsa::BlockGrid& grid,
                      std::span<const dsa::BlockMatch> matches, dsa::Metric metric);

/// Blocks by their status; at_edge ones are of the first pass.
struct BlockCounts {
  int64_t all = 0, replaced = 0, unreliable = 0, outside = 0, at_edge = 0;

  /// Calls f(name, number) for each, by its name in reports.
  template <class F>
  void each(F&& f) const {
    f("blocks", all);
    f("replaced", replaced);
    f("unreliable", unreliable);
    f("outside", outside);
    f("edge_hits", at_edge);
  }
};
/// Adds the blocks of a frame.
void count_blocks(std::span<const dsa::BlockMatch> matches, const dsa::FrameFigures& figures,
                  BlockCounts& counts);

/// EHD, or the entropy of a histogram in natural units.
double similarity_of(const dsa::Score& score, dsa::Metric metric);

/// A vector in pixels.
inline Vec3d pixels_of_q16(const Vec3i& q16) {
  return q16.cast<double>() / (1 << dsa::kVectorBits);
}

}  // namespace larch::pipeline
