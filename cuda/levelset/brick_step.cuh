// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/field_view.cuh"

// A step of one brick by a group of 256 threads. A warp has the voxels of one y: first those of z 0
// to 3, then those of z 4 to 7.
namespace larch::levelset::cuda {

constexpr int32_t kGroupThreads = 256;
constexpr int32_t kGroupWarps = kGroupThreads / 32;
constexpr int32_t kFetches = (kHaloVoxels + kGroupThreads - 1) / kGroupThreads;
/// Floats from a plane of a halo to the next: four of them, a warp's, are in different banks.
constexpr int32_t kPlane = kHalo * kHalo + 4;
constexpr int32_t kWords = kFetches * kGroupWarps + 2;

/// A brick of a field by its place.
struct alignas(8) BrickEntry {
  uint16_t x, y, z, field;
};

/// What a warp did to a brick, and where: bit 0 anywhere, then in the lowest and highest x, y, z.
struct WarpDone {
  StepCount count;
  uint32_t faces;
};

/// Shared memory of a group; two of each, for a brick and the next.
struct BrickScratch {
  float halo[2][kPlane * kHalo];
  uint32_t high[2][kWords], low[2][kWords];  ///< bits: phi is c, phi is -c; by number in the halo
  WarpDone done[2][kGroupWarps];
  BrickEntry entry[2];
};

/// What a thread reads of a brick before the group works on it.
struct Fetched {
  float phi[kFetches];
  int16_t speed[2];
};

/// Waits for the threads of a group alone.
__device__ inline void sync_group(uint32_t group) {
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kGroupThreads) : "memory");
}

/// The place of a brick's first voxel in its field.
__device__ inline int64_t first_voxel(const BrickLayout& layout, const BrickEntry& e) {
  const uint32_t row = e.y + static_cast<uint32_t>(layout.count.y) * e.z;
  return int64_t{e.x + static_cast<uint32_t>(layout.count.x) * row} * kBrickVoxels;
}

/// Are all bricks around one in the image, and near enough in memory for 32 bits?
__device__ inline bool is_inner(const BrickLayout& layout, const BrickEntry& e) {
  const Vec3i& count = layout.count;
  return e.x > 0 && e.y > 0 && e.z > 0 && e.x + 1 < count.x && e.y + 1 < count.y &&
         e.z + 1 < count.z && int64_t{count.x} * count.y < (1 << 20);
}

/// A thread's part of a brick.
class BrickThread {
 public:
  __device__ BrickThread(uint32_t number, const BrickLayout& layout) : number_(number) {
    use(layout);
  }

  __device__ uint32_t lane() const { return number_ % 32; }
  __device__ uint32_t warp() const { return number_ / 32; }

  /// Before `fetch` in a field of another layout.
  __device__ void use(const BrickLayout& layout) {
    const int32_t row = layout.count.x * kBrickVoxels, plane = row * layout.count.y;
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      const Vec3i at = in_halo(i);
      delta_[i] = (at.x >> 3) * kBrickVoxels + (at.y >> 3) * row + (at.z >> 3) * plane +
                  BrickLayout::offset_in_brick(at.x & 7, at.y & 7, at.z & 7);
    }
  }

  /// Starts to read a brick. Beyond the image is its border again.
  __device__ void fetch(const FieldView& view, const float* phi, const BrickEntry& e,
                        Fetched& out) const {
    const BrickLayout& layout = view.layout;
    const int64_t first = first_voxel(layout, e);
    if (is_inner(layout, e)) {
      const float* from = phi + first;
#pragma unroll
      for (int32_t i = 0; i < kFetches; ++i) {
        if (is_in_halo(i)) out.phi[i] = __ldcg(from + delta_[i]);
      }
    } else {
#pragma unroll
      for (int32_t i = 0; i < kFetches; ++i) {
        if (!is_in_halo(i)) continue;
        const Vec3i at = in_halo(i) + Vec3i{e.x, e.y, e.z} * kBrick, size = layout.size;
        out.phi[i] = __ldcg(
            phi + layout.offset({min(max(at.x, 0), size.x - 1), min(max(at.y, 0), size.y - 1),
                                 min(max(at.z, 0), size.z - 1)}));
      }
    }
    const int16_t* speed = view.speeds.speed + first + in_brick();
    out.speed[0] = speed[0];
    out.speed[1] = speed[kHalf];
  }

  /// Puts what was read where the group sees it.
  __device__ void share(const Fetched& in, float clamp, BrickScratch& scratch, int32_t side) const {
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      const uint32_t h = number_ + i * kGroupThreads;
      if (is_in_halo(i)) {
        scratch.halo[side][h + h / (kHalo * kHalo) * (kPlane - kHalo * kHalo)] = in.phi[i];
      }
      const uint32_t high = __ballot_sync(kAllLanes, is_in_halo(i) && in.phi[i] == clamp);
      const uint32_t low = __ballot_sync(kAllLanes, is_in_halo(i) && in.phi[i] == -clamp);
      if (lane() == 0) {
        scratch.high[side][i * kGroupWarps + warp()] = high;
        scratch.low[side][i * kGroupWarps + warp()] = low;
      }
    }
  }

  /// Computes the voxels of this thread and writes them; every lane gets what the warp did.
  /// `view`: views[e.field]; kPlain: it has no edges and is alone, and views is not read.
  template <bool kPlain>
  __device__ WarpDone step(const FieldView& view, const FieldView* views, const BrickEntry& e,
                           int32_t phi_side, const int16_t (&speeds)[2],
                           const BrickScratch& scratch, int32_t side) const {
    const BrickLayout& layout = view.layout;
    const int64_t place = first_voxel(layout, e) + in_brick();
    float* out = view.phi[1 - phi_side] + place;
    const uint32_t constant = constant_halves(scratch, side, kPlain || view.group_count == 1);
    const auto x = static_cast<int32_t>(lane() % 8), y = static_cast<int32_t>(warp());
    const auto z = static_cast<int32_t>(lane() / 8);
    const bool is_row_inside = e.x * kBrick + x < layout.size.x && e.y * kBrick + y < layout.size.y;
    const float* centre = scratch.halo[side] + (z + 1) * kPlane + (y + 1) * kHalo + x + 1;
    float before[2], after[2];
#pragma unroll
    for (int32_t half = 0; half < 2; ++half) {
      before[half] = after[half] = centre[half * 4 * kPlane];
      if (!is_row_inside || e.z * kBrick + z + 4 * half >= layout.size.z) continue;
      if ((constant >> half & 1) == 0) {
        after[half] =
            next_value<kPlain>(view, views, e.field, phi_side, place + half * kHalf,
                               stencil_at(centre + half * 4 * kPlane, kHalo, kPlane), speeds[half]);
      }
      out[half * kHalf] = after[half];
    }
    WarpDone done{};
    if (constant == 3) return done;
    const auto changed_in = [&](int32_t half) {
      return __ballot_sync(kAllLanes,
                           __float_as_uint(before[half]) != __float_as_uint(after[half]));
    };
    const uint32_t changed[2] = {changed_in(0), changed_in(1)};
    if ((changed[0] | changed[1]) == 0) return done;
    done.count = count_of(before, after, changed);
    done.faces = faces_of(changed[0], changed[1]);
    return done;
  }

 private:
  /// Voxels from a thread's first one to its second.
  static constexpr int32_t kHalf = 4 * kBrick * kBrick;

  __device__ bool is_in_halo(int32_t i) const {
    return (i + 1) * kGroupThreads <= kHaloVoxels || number_ + i * kGroupThreads < kHaloVoxels;
  }
  /// What a thread reads, relative to the brick.
  __device__ Vec3i in_halo(int32_t i) const {
    const auto h = static_cast<int32_t>(number_) + i * kGroupThreads;
    return {h % kHalo - 1, h / kHalo % kHalo - 1, h / (kHalo * kHalo) - 1};
  }
  __device__ int32_t in_brick() const {
    return BrickLayout::offset_in_brick(static_cast<int32_t>(lane() % 8),
                                        static_cast<int32_t>(warp()),
                                        static_cast<int32_t>(lane() / 8));
  }

  /// In which halves of this warp's voxels all stencils hold nothing but c, or nothing but -c,
  /// which a step leaves as they are; bits. A group may push -c up, so that it must be computed.
  __device__ uint32_t constant_halves(const BrickScratch& scratch, int32_t side,
                                      bool takes_low) const {
    const uint32_t plane = lane() % 16;
    bool is_constant_plane = false;
    if (plane < kHalo) {
      const uint32_t* words = lane() < 16 ? scratch.high[side] : scratch.low[side];
      const uint32_t bit = plane * kHalo * kHalo + warp() * kHalo;
      const uint32_t rows = __funnelshift_r(words[bit / 32], words[bit / 32 + 1], bit % 32);
      constexpr uint32_t kThreeRows = (1U << (3 * kHalo)) - 1;
      is_constant_plane = (rows & kThreeRows) == kThreeRows;
    }
    uint32_t planes = __ballot_sync(kAllLanes, is_constant_plane);
    if (!takes_low) planes &= 0xffffU;
    constexpr uint32_t kFirst = 0x3f, kSecond = kFirst << 4;
    const auto both = [](uint32_t of) {
      return static_cast<uint32_t>((of & kFirst) == kFirst) |
             static_cast<uint32_t>((of & kSecond) == kSecond) << 1;
    };
    return both(planes) | both(planes >> 16);
  }

  __device__ uint32_t faces_of(uint32_t first, uint32_t second) const {
    const uint32_t any = first | second;
    uint32_t faces = 1;
    if ((any & 0x01010101U) != 0) faces |= 2;
    if ((any & 0x80808080U) != 0) faces |= 4;
    if (warp() == 0) faces |= 8;
    if (warp() == kGroupWarps - 1) faces |= 16;
    if ((first & 0xffU) != 0) faces |= 32;
    if ((second >> 24) != 0) faces |= 64;
    return faces;
  }

  uint32_t number_;
  int32_t delta_[kFetches];  ///< of what is read, from the first voxel of an inner brick
};

/// What all warps of a group did; called by one warp, for every lane.
__device__ inline WarpDone sum_of(const WarpDone (&parts)[kGroupWarps], uint32_t lane) {
  WarpDone part{};
  if (lane < kGroupWarps) part = parts[lane];
  WarpDone all{};
  all.faces = __reduce_or_sync(kAllLanes, part.faces);
  if (all.faces == 0) return all;
  all.count.changed = __reduce_add_sync(kAllLanes, part.count.changed);
  all.count.flipped = __reduce_add_sync(kAllLanes, part.count.flipped);
  all.count.grown = __reduce_add_sync(kAllLanes, part.count.grown);
  all.count.squares = 0;
  for (uint32_t w = 0; w < kGroupWarps; ++w) all.count.squares += parts[w].count.squares;
  return all;
}

}  // namespace larch::levelset::cuda
