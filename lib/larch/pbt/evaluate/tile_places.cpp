// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/tile_places.h"

namespace larch::pbt::cpu {

TilePlaces::TilePlaces(const CpuPlan& plan, const EvaluateJob& job)
    : levels(plan.levels.size()), plan_(plan), job_(job), bases_(job.layouts.size()) {
  for (size_t k = 0; k < levels.size(); ++k) {
    levels[k].level = plan.levels[k];
    levels[k].image = job.size;
    for (int l = 0; l < plan.levels[k]; ++l) levels[k].image = image::pyramid_size(levels[k].image);
  }
}

void TilePlaces::enter(const Vec3i& corner) {
  const Vec3i end{std::min(corner.x + kTile.x, job_.size.x),
                  std::min(corner.y + kTile.y, job_.size.y),
                  std::min(corner.z + kTile.z, job_.size.z)};
  for (TileLevel& level : levels) level.set(corner, end);
  for (size_t c = 0; c < bases_.size(); ++c) set_bases(c);
  list_voxels(corner, end);
}

void TilePlaces::set_bases(size_t channel) {
  const image::IntegralLayout& layout = job_.layouts[channel];
  const TileLevel& level = levels[plan_.channel_level[channel]];
  std::vector<int64_t>& base = bases_[channel];
  base.clear();
  for (int z = 0; z < level.size.z; ++z) {
    for (int y = 0; y < level.size.y; ++y) {
      for (int s = 0; s < level.slots_in_row; ++s) {
        base.push_back(layout.element_at_level({level.slot_x(s), level.lo.y + y, level.lo.z + z}));
      }
    }
  }
}

void TilePlaces::list_voxels(const Vec3i& corner, const Vec3i& end) {
  root_.clear();
  voxels_.clear();
  for (TileLevel& level : levels) level.place_of.resize(levels[0].sum.size());
  for (int z = corner.z; z < end.z; ++z) {
    for (int y = corner.y; y < end.y; ++y) {
      for (int x = corner.x; x < end.x; ++x) {
        const int64_t i =
            x + static_cast<int64_t>(job_.size.x) * (y + static_cast<int64_t>(job_.size.y) * z);
        if (job_.roi != nullptr && job_.roi[i] == 0) {
          store_probability(job_, i, 0);
          continue;
        }
        const int32_t place = levels[0].place(x, y, z);
        voxels_.push_back(i);
        root_.push_back({place, kOneQ30});
        for (TileLevel& level : levels) {
          level.place_of[static_cast<size_t>(place)] =
              level.place(x >> level.level, y >> level.level, z >> level.level);
        }
      }
    }
  }
}

}  // namespace larch::pbt::cpu
