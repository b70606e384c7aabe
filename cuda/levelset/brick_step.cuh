// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/field_view.cuh"

// A step of one brick by a team of 256 threads. A warp has the voxels of one y: first those of z 0
// to 3, then those of z 4 to 7, the brick's halves. Two teams may take a half each.
namespace larch::levelset::cuda {

constexpr int32_t kTeamThreads = 256;
constexpr int32_t kTeamWarps = kTeamThreads / 32;
constexpr int32_t kFetches = (kHaloVoxels + kTeamThreads - 1) / kTeamThreads;
/// Bits of both halves.
constexpr uint32_t kBothHalves = 3;
/// Floats from a plane of a halo to the next. The four floats of padding put the four planes that a
/// warp reads into different banks.
constexpr int32_t kPlanePitch = kHalo * kHalo + 4;
/// Words of a bit per voxel of a halo.
constexpr int32_t kHaloWords = (kHaloVoxels + 31) / 32;

/// Fields that a BrickEntry can number.
constexpr uint32_t kMostNumbered = 0x7fff;

/// A brick of a field.
struct BrickEntry {
  uint32_t number = 0;   ///< of the brick in its field
  uint32_t x_y = 0;      ///< its place: x, and y in the upper half
  uint32_t z_field = 0;  ///< z, then the field, and in the highest bit is_inner

  __device__ int32_t x() const { return static_cast<int32_t>(x_y & 0xffffU); }
  __device__ int32_t y() const { return static_cast<int32_t>(x_y >> 16); }
  __device__ int32_t z() const { return static_cast<int32_t>(z_field & 0xffffU); }
  __device__ int32_t field() const { return static_cast<int32_t>(z_field >> 16 & kMostNumbered); }
  /// Are all bricks around it in the image, and near enough in memory for 32 bits?
  __device__ bool is_inner() const { return z_field >> 31 != 0; }
  __device__ int64_t first_voxel() const { return int64_t{number} * kBrickVoxels; }
};

__device__ inline BrickEntry brick_entry(const BrickLayout& layout, const Vec3i& at,
                                         int32_t field) {
  const Vec3i& count = layout.count;
  const bool is_inner = at.x > 0 && at.y > 0 && at.z > 0 && at.x + 1 < count.x &&
                        at.y + 1 < count.y && at.z + 1 < count.z &&
                        int64_t{count.x} * count.y < (1 << 20);
  return {static_cast<uint32_t>(layout.brick_of(at)),
          static_cast<uint32_t>(at.x) | static_cast<uint32_t>(at.y) << 16,
          static_cast<uint32_t>(at.z) | static_cast<uint32_t>(field) << 16 |
              static_cast<uint32_t>(is_inner) << 31};
}

/// By half of a brick.
using HalvesDone = WarpDone<2>;

/// Shared memory of a team; two of each, for a brick and the next.
struct BrickScratch {
  float halo[2][kPlanePitch * kHalo];
  uint32_t high[2][kHaloWords], low[2][kHaloWords];  ///< bits by number in the halo: phi is c, -c
  HalvesDone done[2][kTeamWarps];
  /// Where phi of the halo lies, from the first voxel of an inner brick; each thread reads what it
  /// wrote.
  int32_t offsets[kFetches * kTeamThreads];
};

/// What a thread reads of a brick before its team works on it.
struct Fetched {
  float phi[kFetches];
  int32_t speed[2];  ///< by half
};

/// Waits for the threads of a team alone.
__device__ inline void sync_team(uint32_t team) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(kTeamThreads) : "memory");
}
/// Waits for two of `kTeams` teams.
template <uint32_t kTeams>
__device__ void sync_pair(uint32_t pair) {
  asm volatile("bar.sync %0, %1;" ::"r"(kTeams + 1 + pair), "n"(2 * kTeamThreads) : "memory");
}

/// The same value, opaque to the compiler, which then computes what follows from it where it is
/// needed instead of holding it in registers throughout.
__device__ inline uint32_t opaque(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
/// The same value, held in a register: without the shuffle the assembler would compute it again at
/// each use from the special register of the thread's number, which is slow to read. Called by
/// whole warps.
__device__ inline uint32_t in_register(uint32_t value) {
  return __shfl_sync(kAllLanes, value, static_cast<int>(threadIdx.x % 32));
}

/// A thread's part of a brick.
class BrickThread {
 public:
  /// `number`: in the team.
  __device__ explicit BrickThread(uint32_t number)
      : number_(in_register(number)),
        centre_(in_register(
            static_cast<uint32_t>((z(0) + 1) * kPlanePitch + (y() + 1) * kHalo + x() + 1))),
        rows_(in_register((lane() % 16 * kHalo + warp()) * kHalo)) {}

  __device__ uint32_t lane() const { return number_ % 32; }
  __device__ uint32_t warp() const { return number_ / 32; }
  /// The place of the thread's voxels in the brick.
  __device__ int32_t x() const { return static_cast<int32_t>(lane() % 8); }
  __device__ int32_t y() const { return static_cast<int32_t>(warp()); }
  __device__ int32_t z(int32_t half) const { return static_cast<int32_t>(lane() / 8) + 4 * half; }
  /// The same from the first voxel of the brick on.
  __device__ int32_t in_brick(int32_t half) const {
    return BrickLayout::offset_in_brick(x(), y(), z(half));
  }

  /// For all bricks of a field.
  __device__ void make_offsets(const BrickLayout& layout, BrickScratch& scratch) const {
    // Unsigned, since the product may wrap where rows are so long that bricks are not inner
    // (brick_entry), and offsets are not used.
    const uint32_t row = static_cast<uint32_t>(layout.count.x) * kBrickVoxels;
    const uint32_t plane = row * static_cast<uint32_t>(layout.count.y);
#pragma unroll 1
    for (uint32_t h = number_; h < kHaloVoxels; h += kTeamThreads) {
      const Vec3i at = in_halo(h);
      scratch.offsets[h] = static_cast<int32_t>(
          static_cast<uint32_t>(at.x >> 3) * kBrickVoxels + static_cast<uint32_t>(at.y >> 3) * row +
          static_cast<uint32_t>(at.z >> 3) * plane +
          static_cast<uint32_t>(BrickLayout::offset_in_brick(at.x & 7, at.y & 7, at.z & 7)));
    }
  }

  /// Starts to read a brick. Beyond the image is its border again.
  __device__ void fetch(const FieldView& view, const float* phi, const BrickEntry& e,
                        const BrickScratch& scratch, Fetched& out) const {
    if (e.is_inner()) {
      const float* from = phi + e.first_voxel();
#pragma unroll
      for (int32_t i = 0; i < kFetches; ++i) {
        if (is_in_halo(i)) out.phi[i] = __ldcg(from + scratch.offsets[number_ + i * kTeamThreads]);
      }
    } else {
      const Vec3i first = Vec3i{e.x(), e.y(), e.z()} * kBrick, size = view.layout.size;
      const uint32_t number = opaque(number_);
#pragma unroll
      for (int32_t i = 0; i < kFetches; ++i) {
        if (!is_in_halo(i)) continue;
        const Vec3i at = in_halo(number + i * kTeamThreads) + first;
        out.phi[i] = __ldcg(
            phi + view.layout.offset({min(max(at.x, 0), size.x - 1), min(max(at.y, 0), size.y - 1),
                                      min(max(at.z, 0), size.z - 1)}));
      }
    }
    const int16_t* speed = view.speeds.speed + e.first_voxel() + in_brick(0);
    out.speed[0] = speed[0];
    out.speed[1] = speed[kHalf];
  }

  /// Puts what was read where the team sees it.
  __device__ void share(const Fetched& in, float clamp, BrickScratch& scratch, int32_t side) const {
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      const uint32_t h = number_ + i * kTeamThreads;
      if (is_in_halo(i)) {
        scratch.halo[side][h + h / (kHalo * kHalo) * (kPlanePitch - kHalo * kHalo)] = in.phi[i];
      }
      const uint32_t high = __ballot_sync(kAllLanes, is_in_halo(i) && in.phi[i] == clamp);
      const uint32_t low = __ballot_sync(kAllLanes, is_in_halo(i) && in.phi[i] == -clamp);
      if (lane() == 0) {
        scratch.high[side][i * kTeamWarps + warp()] = high;
        scratch.low[side][i * kTeamWarps + warp()] = low;
      }
    }
  }

  /// Where phi of the thread's voxel of a half stands in a shared halo.
  __device__ const float* centre(const BrickScratch& scratch, int32_t side, int32_t half) const {
    return scratch.halo[side] + centre_ + half * 4 * kPlanePitch;
  }

  /// Computes the voxels of this thread in some halves (bits) and writes them; every lane gets what
  /// the warp did. `view`: views[e.field()]; kPlain: it has no edges and is alone, and views is not
  /// read.
  template <bool kPlain>
  __device__ HalvesDone step(const FieldView& view, const FieldView* views, const BrickEntry& e,
                             uint32_t halves, int32_t phi_side, const int32_t (&speeds)[2],
                             const BrickScratch& scratch, int32_t side) const {
    const int64_t place = e.first_voxel() + in_brick(0);
    float* out = view.phi[1 - phi_side] + place;
    const uint32_t constant = constant_halves(scratch, side, kPlain || view.group_count == 1);
    if (!e.is_inner()) halves &= halves_inside(view.layout.size, e);
    float before[2], after[2];
#pragma unroll
    for (int32_t half = 0; half < 2; ++half) {
      const float* at = centre(scratch, side, half);
      before[half] = after[half] = *at;
      if ((halves >> half & 1) == 0) continue;
      if ((constant >> half & 1) == 0) {
        after[half] = next_value<kPlain>(view, views, e.field(), phi_side, place + half * kHalf,
                                         stencil_at(at, kHalo, kPlanePitch),
                                         static_cast<int16_t>(speeds[half]));
      }
      out[half * kHalf] = after[half];
    }
    if (constant == kBothHalves) return {};
    return compare(before, after);
  }

 private:
  /// Voxels from a thread's first one to its second.
  static constexpr int32_t kHalf = 4 * kBrick * kBrick;

  __device__ bool is_in_halo(int32_t i) const {
    return (i + 1) * kTeamThreads <= kHaloVoxels || number_ + i * kTeamThreads < kHaloVoxels;
  }
  /// The place of a voxel of the halo relative to the brick.
  __device__ static Vec3i in_halo(uint32_t number) {
    const auto h = static_cast<int32_t>(number);
    return {h % kHalo - 1, h / kHalo % kHalo - 1, h / (kHalo * kHalo) - 1};
  }

  /// Which of the thread's voxels lie in the image; bits by half.
  __device__ uint32_t halves_inside(const Vec3i& size, const BrickEntry& e) const {
    if (e.x() * kBrick + x() >= size.x || e.y() * kBrick + y() >= size.y) return 0;
    const int32_t planes = size.z - e.z() * kBrick;
    return static_cast<uint32_t>(z(0) < planes) | static_cast<uint32_t>(z(1) < planes) << 1;
  }

  /// In which halves of this warp's y all stencils hold nothing but c, or nothing but -c, which a
  /// step leaves as they are; bits. A group may push -c up, so that it must be computed.
  __device__ uint32_t constant_halves(const BrickScratch& scratch, int32_t side,
                                      bool takes_low) const {
    // A lane has the three rows of a plane, the upper lanes those of -c; there are ten planes.
    const bool is_plane = lane() % 16 < kHalo;
    const uint32_t* words = lane() < 16 ? scratch.high[side] : scratch.low[side];
    const uint32_t word = is_plane ? rows_ / 32 : 0;
    const uint32_t rows = __funnelshift_r(words[word], words[word + 1], rows_ % 32);
    constexpr uint32_t kThreeRows = (1U << (3 * kHalo)) - 1;
    uint32_t planes = __ballot_sync(kAllLanes, is_plane && (rows & kThreeRows) == kThreeRows);
    if (!takes_low) planes &= 0xffffU;
    constexpr uint32_t kFirst = 0x3f, kSecond = kFirst << 4;
    const auto both = [](uint32_t of) {
      return static_cast<uint32_t>((of & kFirst) == kFirst) |
             static_cast<uint32_t>((of & kSecond) == kSecond) << 1;
    };
    return both(planes) | both(planes >> 16);
  }

  uint32_t number_;
  uint32_t centre_;  ///< of the first voxel, in a shared halo
  uint32_t rows_;    ///< constant_halves: the first bit of the lane's rows
};

/// What a team did to a brick, and where: bit 0 anywhere, then in the lowest and highest x, y, z.
struct BrickDone {
  StepCount count;
  uint32_t faces;
};

__device__ inline void add(BrickDone& total, const BrickDone& part) {
  add(total.count, part.count);
  total.faces |= part.faces;
}

/// BrickDone::faces of the warp of a y.
__device__ inline uint32_t faces_of(const HalvesDone& done, uint32_t y) {
  const uint32_t any = done.changed[0] | done.changed[1];
  if (any == 0) return 0;
  uint32_t faces = 1;
  if ((any & 0x01010101U) != 0) faces |= 2;
  if ((any & 0x80808080U) != 0) faces |= 4;
  if (y == 0) faces |= 8;
  if (y == kBrick - 1) faces |= 16;
  if ((done.changed[0] & 0xffU) != 0) faces |= 32;
  if ((done.changed[1] >> 24) != 0) faces |= 64;
  return faces;
}

/// The sum over the warps of a team; called by one warp, for every lane.
__device__ inline BrickDone sum_of(const HalvesDone (&parts)[kTeamWarps], uint32_t lane) {
  HalvesDone part{};
  if (lane < kTeamWarps) part = parts[lane];
  BrickDone all{};
  all.faces = __reduce_or_sync(kAllLanes, faces_of(part, lane));
  if (all.faces == 0) return all;
  const StepCount count = count_of(part);
  all.count.changed = __reduce_add_sync(kAllLanes, count.changed);
  all.count.flipped = __reduce_add_sync(kAllLanes, count.flipped);
  all.count.grown = __reduce_add_sync(kAllLanes, count.grown);
  all.count.squares = warp_sum(count.squares);
  return all;
}

}  // namespace larch::levelset::cuda
