// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/voxel_lists.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "larch/core/parallel.h"
#include "larch/levelset/evolve/voxel_math.h"

namespace larch::levelset::cpu {
namespace {

/// Calls visit(i, offset) for the first `count` neighbours, i from 0, of a voxel that lie in the
/// image. The offset of a voxel is a sum over the axes, made once for all.
template <class Visit>
void for_neighbours(const BrickLayout& layout, uint32_t offset, int32_t count, const Visit& visit) {
  const Vec3i at = voxel_at(layout, offset);
  int64_t along[3][3];
  bool inside[3][3];
  int64_t per_brick = kBrickVoxels;
  int32_t per_voxel = 1;
  for (int axis = 0; axis < 3; ++axis) {
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t place = at[axis] + i - 1;
      inside[axis][i] = place >= 0 && place < layout.size[axis];
      along[axis][i] = place / kBrick * per_brick + place % kBrick * per_voxel;
    }
    per_brick *= layout.count[axis];
    per_voxel *= kBrick;
  }
  for (int32_t n = 0; n < count; ++n) {
    const Vec3i to = neighbour(n) + Vec3i{1, 1, 1};
    if (inside[0][to.x] && inside[1][to.y] && inside[2][to.z]) {
      visit(n, along[0][to.x] + along[1][to.y] + along[2][to.z]);
    }
  }
}

}  // namespace

VoxelLists::VoxelLists(const BrickLayout& layout, Duplicates duplicates, int threads)
    : layout_(layout), duplicates_(duplicates), threads_(threads) {
  const auto voxels = static_cast<size_t>(layout.stored_voxels());
  if (duplicates == Duplicates::kStamps) {
    stamps_.resize(voxels);
  } else {
    tags_.resize(voxels);
  }
}

void VoxelLists::generate(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                          std::vector<uint32_t>& list) {
  list.clear();
  if (duplicates_ == Duplicates::kStamps) {
    generate_by_stamps(changed, k, list);
  } else {
    generate_by_buffers(changed, k, list);
  }
}

void VoxelLists::generate_by_stamps(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                                    std::vector<uint32_t>& list) {
  if (++epoch_ == 0) {
    std::fill(stamps_.begin(), stamps_.end(), 0);
    epoch_ = 1;
  }
  std::mutex lock;
  const auto add = [&](std::vector<uint32_t>& to, int64_t offset) {
    const std::atomic_ref<uint32_t> stamp(stamps_[static_cast<size_t>(offset)]);
    if (stamp.load(std::memory_order_relaxed) != epoch_ &&
        stamp.exchange(epoch_, std::memory_order_relaxed) != epoch_) {
      to.push_back(static_cast<uint32_t>(offset));
    }
  };
  for (size_t other = 0; other < changed.size(); ++other) {
    const auto wake = [&](int64_t first, int64_t last) {
      std::vector<uint32_t> here;
      for (int64_t i = first; i < last; ++i) {
        const uint32_t offset = changed[other][static_cast<size_t>(i)];
        if (offset == kNoVoxel) continue;
        add(here, offset);
        if (other != k) continue;
        for_neighbours(layout_, offset, kNeighbours,
                       [&](int32_t, int64_t there) { add(here, there); });
      }
      const std::lock_guard guard(lock);
      list.insert(list.end(), here.begin(), here.end());
    };
    const auto count = static_cast<int64_t>(changed[other].size());
    parallel_for(threads_, count, fair_grain(threads_, count, 4096), wake);
  }
}

void VoxelLists::dilate(const std::vector<uint32_t>& from, std::vector<uint32_t>& list) {
  const auto count = static_cast<int64_t>(from.size());
  const int64_t grain = fair_grain(threads_, count, 4096);
  for (std::vector<uint32_t>& buffer : buffers_) buffer.assign(from.size(), kNoVoxel);
  parallel_for(threads_, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto h = static_cast<size_t>(i);
      if (from[h] == kNoVoxel) continue;
      buffers_[0][h] = from[h];
      for_neighbours(layout_, from[h], 6, [&](int32_t n, int64_t there) {
        buffers_[static_cast<size_t>(n) + 1][h] = static_cast<uint32_t>(there);
      });
    }
  });
  // No voxel stands twice in one buffer, so that no two threads meet at a tag.
  for (std::vector<uint32_t>& buffer : buffers_) {
    parallel_for(threads_, count, grain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        uint32_t& voxel = buffer[static_cast<size_t>(i)];
        if (voxel == kNoVoxel) continue;
        uint8_t& tag = tags_[voxel];
        if (tag != 0) voxel = kNoVoxel;
        tag = 1;
      }
    });
  }
  list.clear();
  for (const std::vector<uint32_t>& buffer : buffers_) {
    for (const uint32_t voxel : buffer) {
      if (voxel != kNoVoxel) list.push_back(voxel);
    }
  }
}

void VoxelLists::clear_tags(const std::vector<uint32_t>& list) {
  for (const uint32_t voxel : list) tags_[voxel] = 0;
}

void VoxelLists::generate_by_buffers(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                                     std::vector<uint32_t>& list) {
  dilate(changed[k], round_);
  clear_tags(round_);
  dilate(round_, list);
  for (size_t other = 0; other < changed.size(); ++other) {
    if (other == k) continue;
    for (const uint32_t voxel : changed[other]) {
      if (voxel == kNoVoxel || tags_[voxel] != 0) continue;
      tags_[voxel] = 1;
      list.push_back(voxel);
    }
  }
  clear_tags(list);
}

}  // namespace larch::levelset::cpu
