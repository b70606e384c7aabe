// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/data_speed.h"

#include <atomic>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

constexpr int64_t kVoxelsAtATime = int64_t{1} << 14;

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

int64_t count_without_number(const DataSpeed& parts, int threads) {
  std::atomic<int64_t> count{0};
  parallel_for(threads, parts.image->voxels(), kVoxelsAtATime, [&](int64_t begin, int64_t end) {
    int64_t here = 0;
    for (int64_t i = begin; i < end; ++i) here += is_without_number(parts, i) ? 1 : 0;
    count += here;
  });
  return count;
}

Volume<int16_t> stored_data_speed(const DataSpeed& parts, int threads) {
  auto stored = Volume<int16_t>::unfilled(parts.image->grid());
  // Most runs have a window alone, whose speed needs no look at the other parts for each voxel.
  const bool is_window_alone = parts.window && parts.given == nullptr &&
                               !(parts.region_weight > 0) && parts.edge_stop == nullptr &&
                               parts.pinned == nullptr;
  parallel_for(threads, stored.voxels(), kVoxelsAtATime, [&](int64_t begin, int64_t end) {
    if (is_window_alone) {
      const Window window = *parts.window;
      const float* intensities = parts.image->data();
      for (int64_t i = begin; i < end; ++i) {
        stored[i] = stored_speed(window_speed(window, intensities[i]));
      }
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const bool is_pinned = parts.pinned != nullptr && (*parts.pinned)[i] != 0;
      stored[i] = is_pinned ? kFrozen : stored_speed(speed_at(parts, i));
    }
  });
  return stored;
}

}  // namespace larch::levelset
