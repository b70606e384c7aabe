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

/// A thread's part of a brick.
class BrickThread {
 public:
  __device__ explicit BrickThread(uint32_t number) : number_(number) {
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      const int32_t h = static_cast<int32_t>(number) + i * kGroupThreads;
      const int32_t x = h % kHalo, y = h / kHalo % kHalo, z = h / (kHalo * kHalo);
      place_[i] = static_cast<uint32_t>(x | y << 8 | z << 16);
    }
  }

  __device__ uint32_t lane() const {
    return number_ % 32;
  }
  __device__ uint32_t warp() const {
    return number_ / 32;
  }

  /// Starts to read a brick. Beyond the image is its border again.
  __device__ void fetch(const FieldView& view, const float* phi, const BrickEntry& e,
                        Fetched& out) const {
    const BrickLayout& layout = view.layout;
    const int32_t row = layout.count.x * kBrickVoxels;
    const int64_t plane = int64_t{row} * layout.count.y;
    const int64_t first = first_voxel(layout, e);
    const float* from = phi + first;
    const bool is_inner = e.x > 0 && e.y > 0 && e.z > 0 && e.x + 1 < layout.count.x &&
                          e.y + 1 < layout.count.y && e.z + 1 < layout.count.z;
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      auto x = static_cast<int32_t>(place_[i] & 255) - 1;
      auto y = static_cast<int32_t>(place_[i] >> 8 & 255) - 1;
      auto z = static_cast<int32_t>(place_[i] >> 16) - 1;
      if (z > kBrick) break;
      if (!is_inner) {
        x = in_image(x, e.x, layout.size.x);
        y = in_image(y, e.y, layout.size.y);
        z = in_image(z, e.z, layout.size.z);
      }
      const int32_t in_plane = (x >> 3) * kBrickVoxels + (y >> 3) * row +
                               BrickLayout::offset_in_brick(x & 7, y & 7, z & 7);
      out.phi[i] = __ldcg(from + in_plane + (z >> 3) * plane);
    }
    out.speed[0] = view.speeds.speed[first + in_brick(0)];
    out.speed[1] = view.speeds.speed[first + in_brick(1)];
  }

  /// Puts what was read where the group sees it.
  __device__ void share(const Fetched& in, float clamp, BrickScratch& scratch, int32_t side) const {
#pragma unroll
    for (int32_t i = 0; i < kFetches; ++i) {
      const auto h = static_cast<int32_t>(number_) + i * kGroupThreads;
      const bool is_one = h < kHaloVoxels;
      if (is_one) {
        scratch.halo[side][h + static_cast<int32_t>(place_[i] >> 16) * (kPlane - kHalo * kHalo)] =
            in.phi[i];
      }
      const uint32_t high = __ballot_sync(kAllLanes, is_one && in.phi[i] == clamp);
      const uint32_t low = __ballot_sync(kAllLanes, is_one && in.phi[i] == -clamp);
      if (lane() == 0) {
        scratch.high[side][i * kGroupWarps + warp()] = high;
        scratch.low[side][i * kGroupWarps + warp()] = low;
      }
    }
  }

  /// Computes the voxels of this thread and writes them; every lane gets what the warp did.
  template <bool kPlain>
  __device__ WarpDone step(const FieldView* views, const BrickEntry& e, int32_t phi_side,
                           const int16_t (&speeds)[2], const BrickScratch& scratch,
                           int32_t side) const {
    const FieldView& view = views[e.field];
    const BrickLayout& layout = view.layout;
    const int64_t first = first_voxel(layout, e);
    float* out = view.phi[1 - phi_side];
    const uint32_t constant = constant_halves(scratch, side, kPlain || view.group_count == 1);
    const auto x = static_cast<int32_t>(lane() % 8), y = static_cast<int32_t>(warp());
    const bool is_row_inside = e.x * kBrick + x < layout.size.x && e.y * kBrick + y < layout.size.y;
    WarpDone done{};
#pragma unroll
    for (int32_t half = 0; half < 2; ++half) {
      const int32_t z = static_cast<int32_t>(lane() / 8) + 4 * half;
      const int64_t at = first + in_brick(half);
      const float* centre = scratch.halo[side] + (z + 1) * kPlane + (y + 1) * kHalo + x + 1;
      const float before = *centre;
      float after = before;
      const bool is_inside = is_row_inside && e.z * kBrick + z < layout.size.z;
      if ((constant >> half & 1) == 0 && is_inside) {
        after = next_value<kPlain>(views, e.field, phi_side, at, stencil_at(centre, kHalo, kPlane),
                                   speeds[half]);
      }
      if (is_inside) out[at] = after;
      if ((constant >> half & 1) != 0) continue;
      const uint32_t changed =
          __ballot_sync(kAllLanes, __float_as_uint(before) != __float_as_uint(after));
      add(done.count, count_of(before, after, changed));
      done.faces |= faces_of(changed, half);
    }
    return done;
  }

 private:
  __device__ static int64_t first_voxel(const BrickLayout& layout, const BrickEntry& e) {
    return layout.brick_of({e.x, e.y, e.z}) * kBrickVoxels;
  }
  /// A place relative to a brick, moved into the image.
  __device__ static int32_t in_image(int32_t at, int32_t brick, int32_t size) {
    return min(max(at, -brick * kBrick), size - 1 - brick * kBrick);
  }
  __device__ int32_t in_brick(int32_t half) const {
    return BrickLayout::offset_in_brick(static_cast<int32_t>(lane() % 8),
                                        static_cast<int32_t>(warp()),
                                        static_cast<int32_t>(lane() / 8) + 4 * half);
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
    constexpr uint32_t kSix = 0x3f;
    const auto both = [&](uint32_t from) {
      return static_cast<uint32_t>((planes >> from & kSix) == kSix) |
             static_cast<uint32_t>((planes >> (from + 4) & kSix) == kSix) << 1;
    };
    return both(0) | both(16);
  }

  __device__ uint32_t faces_of(uint32_t changed, int32_t half) const {
    if (changed == 0) return 0;
    uint32_t faces = 1;
    if ((changed & 0x01010101U) != 0) faces |= 2;
    if ((changed & 0x80808080U) != 0) faces |= 4;
    if (warp() == 0) faces |= 8;
    if (warp() == kGroupWarps - 1) faces |= 16;
    if (half == 0 && (changed & 0xffU) != 0) faces |= 32;
    if (half == 1 && (changed >> 24) != 0) faces |= 64;
    return faces;
  }

  uint32_t number_;
  uint32_t place_[kFetches];
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
