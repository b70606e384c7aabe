// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/data_speed.h"

#include <cmath>

#include "larch/core/parallel.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

double speed_at(const DataSpeed& parts, int64_t i) {
  const float intensity = (*parts.image)[i];
  double speed = -1;
  if (parts.window) {
    speed = window_speed(*parts.window, intensity);
  } else if (parts.given != nullptr && std::isfinite((*parts.given)[i])) {
    speed = static_cast<double>((*parts.given)[i]) / parts.given_scale;
  }
  if (parts.region_weight > 0) {
    speed = (1 - parts.region_weight) * speed +
            parts.region_weight * region_speed(parts.means, intensity);
  }
  if (parts.edge_stop != nullptr) {
    speed *= static_cast<double>((*parts.edge_stop)[i]) / kSpeedOne;
  }
  return speed;
}

}  // namespace

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
