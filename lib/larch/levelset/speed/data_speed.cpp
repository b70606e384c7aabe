// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/data_speed.h"

#include <cmath>

#include "larch/core/parallel.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

/// Whether a number that D is made from is none: D is -1 there.
bool is_without_number(const DataSpeed& parts, int64_t i) {
  if (parts.given != nullptr && !std::isfinite((*parts.given)[i])) return true;
  return (parts.given == nullptr || parts.region_weight > 0) && !std::isfinite((*parts.image)[i]);
}

/// D before edges slow it down.
double speed_without_edges(const DataSpeed& parts, int64_t i) {
  if (is_without_number(parts, i)) return -1;
  const float intensity = (*parts.image)[i];
  double speed = -1;
  if (parts.window) {
    speed = window_speed(*parts.window, intensity);
  } else if (parts.given != nullptr) {
    speed = static_cast<double>((*parts.given)[i]) / parts.given_scale;
  }
  if (!(parts.region_weight > 0)) return speed;
  return (1 - parts.region_weight) * speed +
         parts.region_weight * region_speed(parts.means, intensity);
}

double speed_at(const DataSpeed& parts, int64_t i) {
  const double speed = speed_without_edges(parts, i);
  if (parts.edge_stop == nullptr) return speed;
  return speed * (static_cast<double>((*parts.edge_stop)[i]) / kSpeedOne);
}

}  // namespace

int64_t count_without_number(const DataSpeed& parts) {
  int64_t count = 0;
  for (int64_t i = 0; i < parts.image->voxels(); ++i) count += is_without_number(parts, i) ? 1 : 0;
  return count;
}

Volume<int16_t> stored_data_speed(const DataSpeed& parts, int threads) {
  Volume<int16_t> stored(parts.image->grid());
  parallel_for(threads, stored.voxels(), int64_t{1} << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool is_pinned = parts.pinned != nullptr && (*parts.pinned)[i] != 0;
      stored[i] = is_pinned ? kFrozen : stored_speed(speed_at(parts, i));
    }
  });
  return stored;
}

}  // namespace larch::levelset
