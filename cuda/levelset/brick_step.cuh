// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/core/async_copy.cuh"
#include "cuda/levelset/field_view.cuh"

// A step of one brick by a group of 4, 8 or 16 warps. Of the 512 voxels of an active brick about a
// hundred may move: those that are not c, or -c, together with their six neighbours. They are found
// by bits of rows, listed, and computed 32 at a time; 16 warps compute a voxel per lane without
// looking.
namespace larch::levelset::cuda {

/// Warps of a group: a power of two from the fewest to those that have a lane for each voxel.
constexpr uint32_t kLeastWarps = 4, kMostWarps = kBrickVoxels / 32;

/// Where a halo stands in shared memory, in floats. A row holds x from -4 to 11, so that it
/// consists of aligned quads, and the rest is padding: eight rows side by side, and four planes, do
/// not meet in a bank.
constexpr int32_t kRowStart = -4, kRowFloats = 16;
constexpr int32_t kRowPitch = kRowFloats + 4;
constexpr int32_t kPlanePitch = kHalo * kRowPitch;
constexpr int32_t kQuad = 4;
constexpr int32_t kRowQuads = kRowFloats / kQuad;
/// Quads of a halo.
constexpr int32_t kCopies = kHalo * kHalo * kRowQuads;

/// Fields that a BrickEntry can number.
constexpr uint32_t kMostNumbered = 0x7fff;

/// A brick of a field.
struct BrickEntry {
  static constexpr uint32_t kInner = 1U << 31;
  uint32_t number = 0;   ///< of the brick in its field
  uint32_t x_y = 0;      ///< its place: x, and y in the upper half
  uint32_t z_field = 0;  ///< z, then the field, and kInner

  __device__ int32_t x() const { return static_cast<int32_t>(x_y & 0xffffU); }
  __device__ int32_t y() const { return static_cast<int32_t>(x_y >> 16); }
  __device__ int32_t z() const { return static_cast<int32_t>(z_field & 0xffffU); }
  __device__ int32_t field() const { return static_cast<int32_t>(z_field >> 16 & kMostNumbered); }
  /// Are all bricks around it in the image, and near enough in memory for 32 bits?
  __device__ bool is_inner() const { return (z_field & kInner) != 0; }
  __device__ int64_t first_voxel() const { return int64_t{number} * kBrickVoxels; }
};

/// BrickEntry::is_inner as far as y and z go.
__device__ inline bool is_inner_row(const BrickLayout& layout, const Vec3i& at) {
  const Vec3i& count = layout.count;
  return at.y > 0 && at.z > 0 && at.y + 1 < count.y && at.z + 1 < count.z &&
         int64_t{count.x} * count.y < (1 << 20);
}
__device__ inline BrickEntry brick_entry(const BrickLayout& layout, const Vec3i& at,
                                         int32_t field) {
  const bool is_inner = at.x > 0 && at.x + 1 < layout.count.x && is_inner_row(layout, at);
  return {static_cast<uint32_t>(layout.brick_of(at)),
          static_cast<uint32_t>(at.x) | static_cast<uint32_t>(at.y) << 16,
          static_cast<uint32_t>(at.z) | static_cast<uint32_t>(field) << 16 |
              (is_inner ? BrickEntry::kInner : 0)};
}

/// Four floats of a halo: where they lie, from the first voxel of an inner brick, and where they
/// go, from the start of the halo.
struct HaloCopy {
  int32_t from, to;
};

/// What the warps of a group did to a brick, gathered in shared memory: where they
/// changed it (bit 0 anywhere, then in the lowest and highest x, y, z). 0 between bricks.
struct BrickDone {
  uint32_t faces, warps;

  /// Adds what a warp did; called by one thread of it. The last one of so many warps gets the faces
  /// of all, the others get 0.
  __device__ uint32_t add(uint32_t of_warp, uint32_t all_warps) {
    if (of_warp != 0) atomicOr(&faces, of_warp);
    __threadfence_block();
    if (atomicAdd(&warps, 1U) + 1 != all_warps) return 0;
    warps = 0;
    return atomicExch(&faces, 0U);
  }
};

/// A brick in shared memory.
struct alignas(16) BrickHalo {
  float phi[kHalo * kPlanePitch];
  int16_t speed[kBrickVoxels];
};

/// Which voxels of a brick move.
struct MovingVoxels {
  static constexpr uint32_t kRows = kHalo * kHalo;
  uint32_t rows[kRows];           ///< of the halo: look_at_rows
  uint32_t count;                 ///< of list_moving; 0 before it
  uint16_t voxels[kBrickVoxels];  ///< BrickLayout::offset_in_brick
};

/// The warps of a group, a power of two, and the number of one of them.
struct Member {
  uint32_t warps, number;
};

template <uint32_t kWarps>
__device__ void sync_warps(uint32_t barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(32 * kWarps) : "memory");
}
/// Waits for the warps of a group alone. `group`: below 15. The number of threads is part of the
/// instruction, since racecheck does not follow barriers that have it in a register.
__device__ inline void sync_group(uint32_t group, const Member& member) {
  if (member.warps == kLeastWarps) {
    sync_warps<kLeastWarps>(group + 1);
  } else if (member.warps == kMostWarps) {
    sync_warps<kMostWarps>(group + 1);
  } else {
    static_assert(kMostWarps == 4 * kLeastWarps);
    sync_warps<2 * kLeastWarps>(group + 1);
  }
}

/// The same value, held in a register: without the shuffle the assembler would compute it again at
/// each use from the special register of the thread's number, which is slow to read. Called by
/// whole warps.
__device__ inline uint32_t in_register(uint32_t value) {
  return __shfl_sync(kAllLanes, value, static_cast<int>(threadIdx.x % 32));
}

/// For all bricks of a field: what fetch copies. Called by so many threads.
__device__ inline void make_copies(const BrickLayout& layout, uint32_t thread, uint32_t threads,
                                   HaloCopy* copies) {
  // Unsigned, since the product may wrap where rows are so long that bricks are not inner
  // (brick_entry), and the copies are not used.
  const uint32_t row = static_cast<uint32_t>(layout.count.x) * kBrickVoxels;
  const uint32_t plane = row * static_cast<uint32_t>(layout.count.y);
#pragma unroll 1
  for (auto c = static_cast<int32_t>(thread); c < kCopies; c += static_cast<int32_t>(threads)) {
    // First the quads of the brick's own columns, then those to the left, then to the right: so
    // threads side by side read what lies side by side in memory.
    constexpr int32_t kRows = kHalo * kHalo;
    const int32_t beside = c / kRows - 2;
    const int32_t line = beside < 0 ? c / 2 : c % kRows;
    const int32_t quad = (beside < 0 ? 1 + c % 2 : 3 * beside) * kQuad, y = line % kHalo,
                  z = line / kHalo;
    const Vec3i at = {quad + kRowStart, y - 1, z - 1};
    copies[c] = {
        static_cast<int32_t>(
            static_cast<uint32_t>(at.x >> 3) * kBrickVoxels +
            static_cast<uint32_t>(at.y >> 3) * row + static_cast<uint32_t>(at.z >> 3) * plane +
            static_cast<uint32_t>(BrickLayout::offset_in_brick(at.x & 7, at.y & 7, at.z & 7))),
        quad + y * kRowPitch + z * kPlanePitch};
  }
}

/// A lane of a group.
class BrickLane {
 public:
  __device__ BrickLane(uint32_t lane, const Member& member) : lane_(lane), member_(member) {}

  /// Starts to read a brick, with all warps of a group. It is there when each has waited for its
  /// copies and then for the others. Beyond the image is its border again. `copies`: make_copies.
  __device__ void fetch(const FieldView& view, const float* phi, const BrickEntry& e,
                        const HaloCopy* copies, BrickHalo& to) const {
    const int64_t first = e.first_voxel();
    if (e.is_inner()) {
      const float* from = phi + first;
#pragma unroll 4
      for (uint32_t c = thread(); c < kCopies; c += threads()) {
        const HaloCopy copy = copies[c];
        larch::cuda::copy_four_words(to.phi + copy.to, from + copy.from);
      }
    } else {
      fetch_border(view.layout, phi, e, to.phi);
    }
    // By the last threads, since the first ones may have one more of the copies above.
    constexpr uint32_t kEach = 8;
    const uint32_t last = threads() - 1 - thread();
    if (last < kBrickVoxels / kEach) {
      larch::cuda::copy_four_words(to.speed + last * kEach,
                                   view.speeds.speed + first + last * kEach);
    }
  }

  /// After that: looks which voxels of the halo are c, and which are -c.
  __device__ void look_at_rows(float clamp, const BrickHalo& brick, MovingVoxels& moving) const {
    if (thread() >= MovingVoxels::kRows) return;
    const float* row = brick.phi + thread() * kRowPitch;
    const float4 low = *reinterpret_cast<const float4*>(row + kQuad);
    const float4 high = *reinterpret_cast<const float4*>(row + 2 * kQuad);
    const float values[kHalo] = {row[kQuad - 1], low.x,  low.y,  low.z,  low.w,
                                 high.x,         high.y, high.z, high.w, row[3 * kQuad]};
    uint32_t bits = 0;
#pragma unroll
    for (int32_t x = 0; x < kHalo; ++x) {
      if (values[x] == clamp) bits |= kIsHigh << x;
      if (values[x] == -clamp) bits |= kIsLow << x;
    }
    moving.rows[thread()] = bits;
  }

  /// Copies phi of the brick to `out`, where what moves is written later, after a barrier.
  __device__ void copy_brick(const FieldView& view, const BrickEntry& e, const BrickHalo& brick,
                             float* out) const {
    constexpr uint32_t kQuads = kBrickVoxels / kQuad;
    if (thread() >= kQuads) return;
    const uint32_t voxel = thread() * kQuad;
    const float* from = centre(brick, voxel);
    if (e.is_inner()) {
      *reinterpret_cast<float4*>(out + voxel) = *reinterpret_cast<const float4*>(from);
      return;
    }
    for (uint32_t i = 0; i < kQuad; ++i) {
      if (is_in_image(view.layout.size, e, voxel + i)) out[voxel + i] = from[i];
    }
  }

  /// After look_at_rows and a barrier: lists the voxels that move. A group of fields may push -c
  /// up, so that it must be computed: keeps_low is false there.
  __device__ void list_moving(const Vec3i& size, const BrickEntry& e, bool keeps_low,
                              MovingVoxels& moving) const {
    // A lane has a row of the brick.
    constexpr uint32_t kBrickRows = kBrick * kBrick;
    if (thread() >= kBrickRows) return;
    const uint32_t row = thread();
    uint32_t voxels = moving_in_row(moving.rows + row_in_halo(row), keeps_low);
    if (!e.is_inner()) voxels &= row_in_image(size, e, row);
    const auto own = static_cast<uint32_t>(__popc(voxels));
    const uint32_t upto = sum_up_to_lane(own, lane_);
    uint32_t first = 0;
    if (lane_ == 31) first = atomicAdd(&moving.count, upto);
    uint16_t* to = moving.voxels + __shfl_sync(kAllLanes, first, 31) + upto - own;
    for (; voxels != 0; voxels &= voxels - 1) {
      *to++ = static_cast<uint16_t>(row * kBrick + first_bit(voxels));
    }
  }

  /// Computes this warp's voxels of a brick and writes them to `out`: of those that are listed, or
  /// of all where `moving` is null. Adds to `count`; gives every lane the faces that the warp's
  /// changes reach (BrickDone). `view`: views[e.field()]; kPlain: it has no edges and is alone, and
  /// views is not read.
  template <bool kPlain>
  __device__ uint32_t step(const FieldView& view, const FieldView* views, const BrickEntry& e,
                           const MovingVoxels* moving, int32_t phi_side, const BrickHalo& brick,
                           float* out, LaneCount& count) const {
    const uint32_t all = moving == nullptr ? kBrickVoxels : moving->count;
    uint32_t faces = 0;
#pragma unroll 1
    for (uint32_t i = thread(); i < all; i += threads()) {
      const uint32_t voxel = moving == nullptr ? i : moving->voxels[i];
      if (moving == nullptr && !e.is_inner() && !is_in_image(view.layout.size, e, voxel)) continue;
      const float* at = centre(brick, voxel);
      const float before = *at;
      const float after =
          next_value<kPlain>(view, views, e.field(), phi_side, e.first_voxel() + voxel,
                             stencil_at(at, kRowPitch, kPlanePitch), brick.speed[voxel]);
      out[voxel] = after;
      if (__float_as_uint(before) == __float_as_uint(after)) continue;
      count.add(before, after);
      faces |= faces_of(voxel);
    }
    return __reduce_or_sync(kAllLanes, faces);
  }

  /// Where phi of a voxel stands.
  __device__ static const float* centre(const BrickHalo& brick, uint32_t voxel) {
    return brick.phi + (z_of(voxel) + 1) * kPlanePitch + (y_of(voxel) + 1) * kRowPitch +
           x_of(voxel) - kRowStart;
  }
  __device__ static Vec3i place(uint32_t voxel) {
    return {static_cast<int32_t>(x_of(voxel)), static_cast<int32_t>(y_of(voxel)),
            static_cast<int32_t>(z_of(voxel))};
  }

 private:
  static constexpr uint32_t kIsHigh = 1, kIsLow = 1U << 16;  ///< of the first voxel of a row

  __device__ uint32_t thread() const {
    return member_.number * 32 + lane_;
  }
  __device__ uint32_t threads() const {
    return member_.warps * 32;
  }
  __device__ static uint32_t x_of(uint32_t voxel) {
    return voxel % kBrick;
  }
  __device__ static uint32_t y_of(uint32_t voxel) {
    return voxel / kBrick % kBrick;
  }
  __device__ static uint32_t z_of(uint32_t voxel) {
    return voxel / (kBrick * kBrick);
  }

  /// The halo of a brick at the border, a voxel at a time.
  __device__ void fetch_border(const BrickLayout& layout, const float* phi, const BrickEntry& e,
                               float* halo) const {
    const Vec3i first = Vec3i{e.x(), e.y(), e.z()} * kBrick, size = layout.size;
#pragma unroll 1
    for (auto h = static_cast<int32_t>(thread()); h < kHaloVoxels;
         h += static_cast<int32_t>(threads())) {
      const int32_t x = h % kHalo, y = h / kHalo % kHalo, z = h / (kHalo * kHalo);
      const Vec3i at = Vec3i{x - 1, y - 1, z - 1} + first;
      larch::cuda::copy_word(
          halo + (x - 1 - kRowStart) + y * kRowPitch + z * kPlanePitch,
          phi + layout.offset({min(max(at.x, 0), size.x - 1), min(max(at.y, 0), size.y - 1),
                               min(max(at.z, 0), size.z - 1)}));
    }
  }

  __device__ static bool is_in_image(const Vec3i& size, const BrickEntry& e, uint32_t voxel) {
    const Vec3i at = Vec3i{e.x(), e.y(), e.z()} * kBrick + place(voxel);
    return at.x < size.x && at.y < size.y && at.z < size.z;
  }
  /// The same for a row of a brick; bits.
  __device__ static uint32_t row_in_image(const Vec3i& size, const BrickEntry& e, uint32_t row) {
    if (!is_in_image(size, e, row * kBrick)) return 0;
    return (1U << min(size.x - e.x() * kBrick, kBrick)) - 1;
  }

  /// The number of a row of the brick among those of its halo.
  __device__ static uint32_t row_in_halo(uint32_t row) {
    return (row / kBrick + 1) * kHalo + row % kBrick + 1;
  }
  /// The voxels of a row of the brick that are neither c nor -c together with their six neighbours
  /// across faces; bits. Where those hold one value the gradient is 0, and with it all that moves a
  /// voxel, whatever its neighbours across edges hold. `row`: the bits of the row among those of
  /// the halo.
  __device__ static uint32_t moving_in_row(const uint32_t* row, bool keeps_low) {
    constexpr int32_t kUp = kHalo;
    const uint32_t beside = row[-1] & row[1] & row[-kUp] & row[kUp];
    const uint32_t still = row[0] & (row[0] & beside) >> 1 & row[0] >> 2;
    const uint32_t low = keeps_low ? still / kIsLow : 0;
    return ~(still | low) & ((1U << kBrick) - 1);
  }

  /// The faces that a change of a voxel reaches (BrickDone).
  __device__ static uint32_t faces_of(uint32_t voxel) {
    constexpr uint32_t kLast = kBrick - 1;
    uint32_t faces = 1;
    if (x_of(voxel) == 0) faces |= 2;
    if (x_of(voxel) == kLast) faces |= 4;
    if (y_of(voxel) == 0) faces |= 8;
    if (y_of(voxel) == kLast) faces |= 16;
    if (z_of(voxel) == 0) faces |= 32;
    if (z_of(voxel) == kLast) faces |= 64;
    return faces;
  }

  uint32_t lane_;
  Member member_;
};

}  // namespace larch::levelset::cuda
