// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/core/async_copy.cuh"
#include "cuda/pbt/evaluate/walk.cuh"

// The bricks of a tile, the copy of the integral volume in shared memory, and the evaluation of a
// node on it.
namespace larch::pbt::cuda {

constexpr int kPasses = 16;
constexpr int kMaximumBricks = 12;  ///< bricks of a tile: a copy for more would not fit
constexpr int kTogether = 4;        ///< voxels of a lane that are evaluated at a time
constexpr int kWarps = 20;          ///< of a block, measured: more hide more latency

/// Voxels of a brick: a pass is a plane of 8 x 1 x 4, whose planes along z are 8 banks apart in the
/// copy.
constexpr int kBrickX = 8, kBrickY = kPasses, kBrickZ = 4;

LARCH_HD Vec3i voxels_of(const Tiling& t) {
  return {t.bricks.x * kBrickX, t.bricks.y * kBrickY, t.bricks.z * kBrickZ};
}
inline int brick_count(const Tiling& t) {
  return t.bricks.x * t.bricks.y * t.bricks.z;
}
/// Returns the voxels of a level that so many at full resolution may lie in.
inline int most_cells(int voxels, int level) {
  return ((voxels + (1 << level) - 2) >> level) + 1;
}

/// Returns what a copy may take of the shared memory of a block.
size_t most_copy_bytes(const Device& device);

/// A place in a tile: a pass, and above it x, y and z of the lane's voxel.
constexpr int kPassBits = 8, kAxisBits = 6;

/// A lane's voxels: kPasses in each brick of the tile, those whose elements of full resolution lie
/// in the lane's bank of shared memory.
struct Lane {
  const WalkArguments& a;
  const Tiling& tiling;
  Vec3i tile;  ///< first voxel in the image
  int lane;

  __device__ Vec3i in_tile(int pass) const {
    const Vec3i brick = voxel_of(pass / kPasses, tiling.bricks);
    const Vec3i at{brick.x * kBrickX, brick.y * kBrickY + pass % kPasses, brick.z * kBrickZ};
    // The bank of an element is x + row y + 8 z modulo 32 (plane strides are 8 banks apart).
    const int turned = (lane - at.x - tiling.copies[0].row * at.y) & 31;
    return at + Vec3i{turned & 7, 0, turned >> 3};
  }
  __device__ Vec3i voxel(int pass) const { return tile + in_tile(pass); }
  __device__ bool in_image(const Vec3i& at) const {
    return at.x < a.out.size.x && at.y < a.out.size.y && at.z < a.out.size.z;
  }
  __device__ bool is_wanted(const Vec3i& at) const {
    return in_image(at) && (a.roi == nullptr || a.roi[a.out.linear(at)] != 0);
  }
  __device__ uint32_t place(int pass) const {
    const Vec3i at = in_tile(pass);
    return static_cast<uint32_t>(((at.z << kAxisBits | at.y) << kAxisBits | at.x) << kPassBits |
                                 pass);
  }
  /// Returns the element of a place in the copy of a channel of this level: the offsets of packed
  /// taps are added to it.
  __device__ int32_t staged_element(uint32_t place, int level) const {
    const Copy& copy = tiling.copies[level];
    const auto cell = [&](int axis) {
      const auto in_tile = static_cast<int>(place >> (kPassBits + kAxisBits * axis));
      return ((tile[axis] + in_tile % (1 << kAxisBits)) >> level) - (tile[axis] >> level);
    };
    return cell(0) + copy.row * cell(1) + copy.plane * cell(2);
  }
};

__device__ inline uint32_t load_shared(uint32_t address) {
  uint32_t value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
  return value;
}

/// The elements at four byte offsets from N addresses in shared memory.
template <int N>
__device__ inline void load_four(const uint32_t (&offset)[4], const uint32_t (&at)[N],
                                 uint32_t (&value)[4][N]) {
#pragma unroll
  for (int t = 0; t < 4; ++t) {
#pragma unroll
    for (int j = 0; j < N; ++j) value[t][j] = load_shared(at[j] + offset[t]);
  }
}

/// Adds the taps of a weak classifier on the copied channel: four taps a word of the stream, of
/// which `first` has been read. All elements of a word are asked for before the first is used.
template <int N>
__device__ inline void add_staged_taps(const uint4* taps, const uint4& first,
                                       const WeakHeader& weak, const uint32_t (&at)[N],
                                       uint32_t (&sum)[N]) {
  uint4 next = first;
  uint32_t value[4][N];
  int k = 0;
  for (; k < weak.pure; ++k) {
    const uint4 word = next;
    // One word beyond the last is the next weak classifier's, or the end of the stream's filling.
    next = __ldg(taps + k + 1);
    const uint32_t offset[4] = {word.x, word.y, word.z, word.w};
    load_four(offset, at, value);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      sum[j] += value[0][j] - value[1][j];
      sum[j] += value[2][j] - value[3][j];
    }
  }
  for (; k < weak.words; ++k) {
    const uint4 word = next;
    next = __ldg(taps + k + 1);
    const uint32_t packed[4] = {word.x, word.y, word.z, word.w};
    const uint32_t offset[4] = {word.x >> kWeightBits, word.y >> kWeightBits, word.z >> kWeightBits,
                                word.w >> kWeightBits};
    load_four(offset, at, value);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const auto weight = static_cast<uint32_t>(
          static_cast<int32_t>(packed[t] << (32 - kWeightBits)) >> (32 - kWeightBits));
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] += weight * value[t][j];
    }
  }
}

/// The node test of boosting trees in a tile, which reads ahead in the stream: adds the votes of a
/// node on the copied channel at N voxels of each lane. `staged`: their addresses in the copy.
template <int N>
__device__ inline void add_votes(const PackedTreeView& tree, const tree::FlatNode& node,
                                 const uint32_t (&staged)[N], int32_t (&votes)[N]) {
  const uint4* at = tree.stream + node.first;
  // The header and the first taps of the next weak classifier are read while this one is at work.
  uint4 next[3] = {__ldg(at), __ldg(at + 1), __ldg(at + 2)};
  for (int w = 0; w < node.n_weak; ++w) {
    const WeakHeader weak(next[0], next[1]);
    const uint4 first = next[2];
    const uint4* following = at + 2 + weak.words;
#pragma unroll
    for (int k = 0; k < 3; ++k) next[k] = __ldg(following + k);
    uint32_t sum[N] = {};
    add_staged_taps(at + 2, first, weak, staged, sum);
    at = following;
#pragma unroll
    for (int j = 0; j < N; ++j) weak.vote(static_cast<int32_t>(sum[j]), votes[j]);
  }
}

/// Copies the tile's part of a channel to shared memory; a warp copies whole rows.
__device__ inline void stage(const WalkArguments& a, const Tiling& t, int channel,
                             const Vec3i& tile, uint32_t* to_copy) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const image::IntegralLayout& layout = a.layouts[channel];
  const Copy& copy = t.copies[layout.level];
  const int level = layout.level;
  const Vec3i first =
      Vec3i{tile.x >> level, tile.y >> level, tile.z >> level} + copy.lo + layout.pad;
  const int columns = min(copy.extent.x, layout.stride_size.x - first.x);
  for (int y = static_cast<int>(threadIdx.x) / 32, z = 0;; y += kWarps) {
    for (; y >= copy.extent.y; ++z) y -= copy.extent.y;
    if (z >= copy.extent.z) break;
    if (first.y + y < layout.stride_size.y &&
        first.z + z < layout.voxels.z + 2 * layout.pad.z + 1) {
      const uint32_t* from =
          a.integral + layout.offset + first.x + layout.linear_offset(0, first.y + y, first.z + z);
      uint32_t* to = to_copy + copy.row * y + copy.plane * z;
      for (int x = lane; x < columns; x += 32) larch::cuda::copy_word(to + x, from + x);
    }
  }
  larch::cuda::wait_for_copies();
}

/// Returns the first voxel of tile n.
__device__ inline Vec3i tile_corner(const Tiling& t, int64_t n) {
  const Vec3i at = voxel_of(n, t.tiles), voxels = voxels_of(t);
  return {at.x * voxels.x, at.y * voxels.y, at.z * voxels.z};
}

}  // namespace larch::pbt::cuda
