// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/data/vec.h"
#include "larch/features/tap.h"

namespace larch::features {

/// The Haar families, in the order of the pool and with the numbers of the model file. Except for
/// box and two-box features, whose constant part carries meaning, a constant image gives 0.
/// Birkbeck, Sofka, Zhou 2011, section 3.2; offset pairs: Sharp 2008, Criminisi et al. 2009.
enum class HaarType : uint16_t {
  kBox = 0,
  kEdgeX,
  kEdgeY,
  kEdgeZ,
  kLineX,
  kLineY,
  kLineZ,
  kCheckerXY,
  kCheckerXZ,
  kCheckerYZ,
  kCentreSurround,
  kOffsetPair,
  kCount
};
const char* to_string(HaarType type);

/// A weighted cuboid: voxels [lo, hi) relative to the voxel that is classified.
struct Cuboid {
  Vec3i lo, hi;
  int32_t weight = 0;

  int64_t voxels() const {
    return static_cast<int64_t>(hi.x - lo.x) * (hi.y - lo.y) * (hi.z - lo.z);
  }
};

/// At most four weighted cuboids of one channel.
struct HaarFeature {
  HaarType type = HaarType::kBox;
  uint16_t channel = 0;
  uint32_t pool_index = 0;  ///< its place in the enumeration; the id in every key
  int cuboid_count = 0;
  std::array<Cuboid, 4> cuboids{};
};

/// Window, box sizes and size of the pool.
struct HaarPoolSpec {
  int features = 20000;  ///< wanted size of the whole pool, all channels
  int window = 17;       ///< odd edge of the window in voxels of the channel's level
  std::vector<int> sizes{1, 2, 3, 4, 6, 8, 12};
  int channels = 1;
  uint64_t seed = 0;  ///< draws members where a family has more than its quota
};

/// Returns the pool: for each channel and family the same quota, in enumeration order; families
/// with few members give all of them, and what they leave goes to the long-range pairs, which are
/// drawn by a counter and never enumerated. Deterministic in `spec`. Throws UsageError for an even
/// window, a window under 3, no sizes, or a pool of 2^24 features and more.
std::vector<HaarFeature> make_haar_pool(const HaarPoolSpec& spec);

/// Corner taps of the integral volume: equal offsets are added up, zeros dropped; sorted by z, y,
/// x.
std::vector<Tap> corner_taps(const HaarFeature& feature);

/// Farthest corner along each axis: offsets lie in [-reach, reach + 1].
Vec3i reach_along(const HaarFeature& feature);
/// That of the farthest of several features of any kind; 0 for none.
template <class Feature>
Vec3i reach_along(const std::vector<Feature>& features) {
  Vec3i farthest{};
  for (const Feature& feature : features) {
    const Vec3i r = reach_along(feature);
    for (int axis = 0; axis < 3; ++axis) farthest[axis] = std::max(farthest[axis], r[axis]);
  }
  return farthest;
}
/// Returns the largest of the three.
int reach(const HaarFeature& feature);

/// Upper bound of |value| for channel values in [-max_abs_value, max_abs_value].
int64_t value_bound(const HaarFeature& feature, int64_t max_abs_value);

/// Refuses features whose value could leave int32 (value_bound >= 2^31), where arithmetic modulo
/// 2^32 would no longer be exact. Throws UsageError that names the feature and the remedy.
void check_exact(const std::vector<HaarFeature>& pool, const std::vector<int64_t>& max_abs_value);

}  // namespace larch::features
