// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "larch/features/lane_kernels.h"
#include "larch/pbt/evaluate/cpu_plan.h"

// What a visit by tiles visits: the voxels of a tile that lie in the region of interest, and where
// their slots lie in the integral channels.
namespace larch::pbt::cpu {

using features::cpu::kLanes;

/// The voxels of a tile: they and their surroundings stay in the second level cache for windows of
/// the usual size. Tiles of four times as many voxels were measured to be no faster, and are too
/// few for many threads.
constexpr Vec3i kTile{32, 8, 8};

/// The voxels of a tile at one pyramid level. They lie in slots of kLanes neighbours along x; place
/// kLanes * slot + lane of every array below is one voxel. The last slot of a row is moved back
/// when it would leave the image, so that reading a whole slot never leaves the integral volume.
struct TileLevel {
  int level = 0;
  bool narrow = false;  ///< the image is narrower than a slot: voxels are read one by one
  Vec3i lo{}, size{}, image{};
  int slots_in_row = 0;
  std::vector<int32_t> place_of;  ///< place at this level of each place at level 0
  std::vector<uint32_t> sum;      ///< of votes; at level 0 it becomes H
  std::vector<int32_t> slots;     ///< those that some active voxel reads
  std::vector<uint8_t> listed;    ///< whether a slot is in `slots`

  void set(const Vec3i& corner, const Vec3i& end) {
    lo = {corner.x >> level, corner.y >> level, corner.z >> level};
    size =
        Vec3i{((end.x - 1) >> level) + 1, ((end.y - 1) >> level) + 1, ((end.z - 1) >> level) + 1} -
        lo;
    slots_in_row = (size.x + kLanes - 1) / kLanes;
    narrow = image.x < kLanes;
    sum.resize(static_cast<size_t>(slot_count()) * kLanes);
    listed.assign(static_cast<size_t>(slot_count()), 0);
  }
  int32_t slot_count() const { return slots_in_row * size.y * size.z; }
  /// First x of a slot of a row.
  int slot_x(int slot) const {
    const int x = lo.x + slot * kLanes;
    return narrow ? x : std::min(x, image.x - kLanes);
  }
  /// Place of a voxel of this level that lies in the tile.
  int32_t place(int x, int y, int z) const {
    const int slot = (x - lo.x) / kLanes;
    return ((slots_in_row * ((y - lo.y) + size.y * (z - lo.z))) + slot) * kLanes +
           (x - slot_x(slot));
  }
};

/// A voxel at a node, and how much of it is there (Q30).
struct Visit {
  int32_t place = 0;
  uint32_t weight = 0;
};
using Visits = std::vector<Visit>;

/// The voxels of one tile after the other.
class TilePlaces {
 public:
  TilePlaces(const CpuPlan& plan, const EvaluateJob& job);

  /// Goes to the tile that begins at `corner`. Voxels outside of the region of interest get the
  /// probability 0 at once.
  void enter(const Vec3i& corner);

  /// The visits of the root, and the voxel of each.
  const Visits& root() const { return root_; }
  int64_t voxel(size_t visit) const { return voxels_[visit]; }
  size_t place_count() const { return levels[0].sum.size(); }

  /// Element of the first voxel of each slot.
  const std::vector<int64_t>& bases(size_t channel) const { return bases_[channel]; }
  /// Element of the voxel that stands at a place of level 0 in the integral volume of a channel.
  int64_t element(size_t channel, size_t place) const {
    const int32_t at = levels[plan_.channel_level[channel]].place_of[place];
    return bases_[channel][static_cast<size_t>(at / kLanes)] + at % kLanes;
  }

  std::vector<TileLevel> levels;  ///< as in the plan

 private:
  void set_bases(size_t channel);
  void list_voxels(const Vec3i& corner, const Vec3i& end);

  const CpuPlan& plan_;
  const EvaluateJob& job_;
  std::vector<std::vector<int64_t>> bases_;  // [channel][slot]
  std::vector<int64_t> voxels_;
  Visits root_;
};

}  // namespace larch::pbt::cpu
