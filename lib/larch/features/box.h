// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/features/haar.h"

namespace larch::features {

/// At most four weighted boxes, each of any channel (Sharp 2008, section 2.1): the sum of the
/// weights times the sums over the boxes. Haar features are such features.
struct BoxFeature {
  int box_count = 0;
  std::array<uint16_t, 4> channels{};
  std::array<Cuboid, 4> boxes{};
};
BoxFeature boxes_of(const HaarFeature& feature);

/// A quarter of the features that are drawn is one box, the others are the difference of two in any
/// two channels, whose weights make it a difference of means, as near as whole numbers of 7 bits
/// come to it. (Sharp's are differences of sums.)
struct BoxSpec {
  int reach = 20;       ///< voxels that a box lies away from the voxel at most, along an axis
  int largest = 12;     ///< edge of a box at most
  bool planar = false;  ///< boxes of one slice
  int channels = 1;
  std::vector<int64_t> bounds{};  ///< largest absolute value of each channel
};
/// Feature number `index` of a stream, by hash. Its value fits 32 bits: boxes are drawn smaller
/// where it would not.
BoxFeature draw_box_feature(const BoxSpec& spec, uint64_t seed, uint64_t stream, uint64_t index);

/// These two are as those of Haar features.
std::vector<Tap> corner_taps(const BoxFeature& feature);
Vec3i reach_along(const BoxFeature& feature);
/// Upper bound of |value|; `bounds`: largest absolute value of each channel.
int64_t value_bound(const BoxFeature& feature, std::span<const int64_t> bounds);
/// Farthest reach of what is drawn; across slices at least 1, unless there is but one.
inline Vec3i reach_along(const BoxSpec& spec) {
  return {spec.reach, spec.reach, spec.planar ? 0 : std::max(1, spec.reach)};
}

}  // namespace larch::features
