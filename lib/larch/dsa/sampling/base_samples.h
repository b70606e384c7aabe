// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/dsa/field/field.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/match_lanes.h"
#include "larch/dsa/sampling/image_part.h"

namespace larch::dsa::cpu {

/// The mask below a block at the vectors of an earlier pass, on the CPU: one per thread, for block
/// after block.
class BaseSamples {
 public:
  /// `job` has a base field.
  explicit BaseSamples(const MatchJob& job);

  /// Finds the vectors of a block's pixels. `reach`: displacements are so many pixels from the
  /// middle of the window at most.
  void move_to(int64_t frame, int32_t block, int32_t reach);
  /// The base field at the block's centre, Q16 pixels.
  const Vec3i& at_centre() const { return at_centre_; }
  /// The mask at base + displacement (units), rows of `padded` samples; what lies beyond the
  /// block's width has no meaning.
  void sample(const Vec3i& units, int64_t padded, uint16_t* out) const;

 private:
  void find_vectors(int64_t frame, int32_t block, int64_t padded);
  void take_part(const Vec3i& centre, int32_t reach);

  const MatchJob& job_;
  const std::vector<LaneTaps> taps_;
  const FieldGrid places_;
  Vec3i start_{}, at_centre_{};
  ImagePart part_{};
  // By pixel of the block, rows padded to whole lanes: base + the pixel's position in the part.
  std::vector<int32_t> x_units_{}, y_units_{};
};

}  // namespace larch::dsa::cpu
