// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/dsa/block_view.cuh"
#include "larch/dsa/field/field_math.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/volume_sampling_math.h"

// The samples of one block of a volume and of the mask at displacements of it. Few displacements of
// a search lie between voxels, and they are sampled from the device's memory. The many ones of a
// window are read from shared memory, which holds the planes of the mask that displacements of one
// z need.
namespace larch::dsa::cuda {

/// Warps of a block of threads; each has a histogram of its own. Two such blocks share a
/// multiprocessor of 228 KiB for blocks of 16^3 and a range of 10.
constexpr int kVolumeWarps = 12;
constexpr int kVolumeThreads = 32 * kVolumeWarps;

/// What the blocks of a launch share; pointers are of the device.
struct VolumeArguments {
  const uint16_t* mask = nullptr;
  const uint16_t* mask_at_zero = nullptr;
  const uint16_t* contrast = nullptr;
  Vec3i image{}, block{}, count{};  ///< voxels, voxels of a block, blocks along each axis
  FieldAxis axes[3]{};              ///< where blocks lie
  int32_t blocks = 0;
  int64_t items = 0;  ///< blocks of all volumes
  const int32_t* bin_shift = nullptr;
  const Vec3i* centre = nullptr;
  BlockMatch* out = nullptr;
  SearchPlan plan{};  ///< without centre
  Ranking ranking{};  ///< without least_count
  Overflow overflow = Overflow::kWrap;
  bool clamps = false;            ///< beyond the volume lie the samples of its faces
  bool skips_weightless = false;  ///< samples of weight 0 need not count
  TapTable taps{};
  FieldView base{};  ///< of the first volume; without vectors: none
  int32_t base_blocks = 0;
};

/// Shared memory: the histograms, then (words, where a window is searched in it) the block and the
/// part of the mask. A word holds two neighbouring samples of a row.
struct VolumeTile {
  bool is_on_chip = false;
  uint32_t contrast = 0, mask = 0, words = 0;
  int32_t pairs = 0, lanes_log2 = 5;  ///< words of a row of the block; lanes that share one
  int32_t row_words = 0, rows = 0;    ///< of a plane of the mask
};

class VolumeSamples {
 public:
  /// `base`: room for the field at the block's voxels, if there is one.
  __device__ VolumeSamples(const VolumeArguments& a, const VolumeTile& tile, Vec3i* base)
      : a_(a),
        tile_(tile),
        mask_{a.mask, a.image, &a.taps, a.clamps, a.skips_weightless},
        base_(base) {}

  __device__ int32_t voxels() const { return a_.block.x * a_.block.y * a_.block.z; }

  /// Goes to a block of a volume; this thread's voxels of it that count.
  __device__ uint32_t move_to(int32_t frame, int32_t block) {
    const Vec3i at{block % a_.count.x, block / a_.count.x % a_.count.y,
                   block / a_.count.x / a_.count.y};
    start_ = {a_.axes[0].starts[at.x], a_.axes[1].starts[at.y], a_.axes[2].starts[at.z]};
    const int64_t all = static_cast<int64_t>(a_.image.x) * a_.image.y * a_.image.z;
    contrast_ = a_.contrast + frame * all + index_of(start_);
    if (a_.base.vectors != nullptr) find_base(frame);
    uint32_t counted = 0;
    for_voxels([&](const Vec3i& voxel, int32_t) { counted += contrast_at(voxel) != kNoSample; });
    return counted;
  }
  /// The base field at the block's centre.
  __device__ Vec3i base_at_centre() const { return base_at_centre_; }

  /// Calls sink(contrast, mask) for this thread's voxels; the second of each pair does not count.
  template <class Sink>
  __device__ void visit(const Vec3i& units, const Sink& sink) const {
    const bool has_base = a_.base.vectors != nullptr;
    const bool is_whole = units.x % kUnit == 0 && units.y % kUnit == 0 && units.z % kUnit == 0;
    const Vec3i pixels{units.x / kUnit, units.y / kUnit, units.z / kUnit};
    for_voxels([&](const Vec3i& voxel, int32_t i) {
      const uint32_t contrast = contrast_at(voxel);
      if (contrast == kNoSample) return;
      const Vec3i at = start_ + voxel;
      uint32_t mask = 0;
      if (has_base) {
        mask = volume_sample(mask_, at * kUnit + units + base_[i]);
      } else if (is_whole) {
        mask = mask_at_zero(at + pixels);
      } else {
        mask = volume_sample(mask_, at * kUnit + units);
      }
      sink(contrast | 0xffff0000u, mask);
    });
  }

  /// Reads the block into shared memory. Whether some of its words hold samples that do not count.
  __device__ bool load_block() const {
    const int32_t rows = a_.block.y * a_.block.z;
    bool misses = false;
    for (int32_t row = static_cast<int32_t>(threadIdx.x / 32); row < rows; row += kVolumeWarps) {
      const Vec3i first{0, row % a_.block.y, row / a_.block.y};
      for (int32_t pair = static_cast<int32_t>(threadIdx.x % 32); pair < tile_.pairs; pair += 32) {
        const int32_t x = 2 * pair;
        const uint32_t left = contrast_at({x, first.y, first.z});
        const uint32_t right =
            x + 1 < a_.block.x ? contrast_at({x + 1, first.y, first.z}) : kNoSample;
        shared_words[tile_.contrast + row * tile_.pairs + pair] = left | right << 16;
        misses |= left == kNoSample || right == kNoSample;
      }
    }
    return __syncthreads_or(misses) != 0;
  }

  /// Reads the part of the filtered mask that whole-voxel displacements (x, y, z) reach, |x|, |y|
  /// <= range from `centre` and z that of `centre`. Whether some samples do not count.
  __device__ bool load_planes(const Vec3i& centre, int32_t range) {
    __syncthreads();  // others may still read the planes before
    const Vec3i first = start_ + centre - Vec3i{range, range, 0};
    mask_x_ = first.x & ~1;
    mask_y_ = first.y;
    const int32_t rows = tile_.rows * a_.block.z;
    bool misses = false;
    for (int32_t row = static_cast<int32_t>(threadIdx.x / 32); row < rows; row += kVolumeWarps) {
      const int32_t y = mask_y_ + row % tile_.rows, z = first.z + row / tile_.rows;
      for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < tile_.row_words; i += 32) {
        const int32_t x = mask_x_ + 2 * i;
        const uint32_t left = mask_at_zero({x, y, z}), right = mask_at_zero({x + 1, y, z});
        shared_words[tile_.mask + row * tile_.row_words + i] = left | right << 16;
        misses |= left == kNoSample || right == kNoSample;
      }
    }
    return __syncthreads_or(misses) != 0;
  }

  /// Calls sink(contrast, mask) for all pairs of voxels of the block, by one warp; `pixels`: a
  /// displacement that the planes were loaded for.
  template <class Sink>
  __device__ void visit_planes(const Vec3i& pixels, const Sink& sink) const {
    const int32_t x = start_.x + pixels.x - mask_x_, y = start_.y + pixels.y - mask_y_;
    // By value: sinks write to memory, after which members would be read anew.
    const PlaneWalk walk{tile_.contrast,
                         tile_.mask + static_cast<uint32_t>(y * tile_.row_words + x / 2),
                         a_.block.z,
                         a_.block.y,
                         tile_.pairs,
                         tile_.row_words,
                         tile_.row_words * tile_.rows,
                         tile_.lanes_log2};
    const bool is_usual =
        a_.block.x == kUsual && a_.block.y == kUsual && a_.block.z % kTogether == 0;
    if (x % 2 == 0) {
      is_usual ? visit_usual<false>(walk, sink) : visit_any<false>(walk, sink);
    } else {
      is_usual ? visit_usual<true>(walk, sink) : visit_any<true>(walk, sink);
    }
  }

 private:
  static constexpr int32_t kUsual = 16;    ///< side of a block
  static constexpr int32_t kTogether = 2;  ///< planes that are read before any of them is counted

  /// The block and, displaced, its first sample of the mask in shared memory, in words.
  struct PlaneWalk {
    uint32_t contrast, mask;
    int32_t planes, rows, pairs;
    int32_t mask_row, mask_plane;
    int32_t lanes_log2;
  };

  __device__ int64_t index_of(const Vec3i& at) const {
    return (static_cast<int64_t>(at.z) * a_.image.y + at.y) * a_.image.x + at.x;
  }
  __device__ uint32_t contrast_at(const Vec3i& voxel) const { return contrast_[index_of(voxel)]; }
  __device__ uint32_t mask_at_zero(const Vec3i& at) const {
    const Vec3i inside{min(max(at.x, 0), a_.image.x - 1), min(max(at.y, 0), a_.image.y - 1),
                       min(max(at.z, 0), a_.image.z - 1)};
    if (!a_.clamps && !(inside == at)) return kNoSample;
    return a_.mask_at_zero[index_of(inside)];
  }

  /// Calls take(voxel, index) for this thread's voxels of the block.
  template <class Take>
  __device__ void for_voxels(const Take& take) const {
    const int32_t count = voxels();
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kVolumeThreads) {
      const int32_t row = i / a_.block.x;
      take(Vec3i{i - row * a_.block.x, row % a_.block.y, row / a_.block.y}, i);
    }
  }

  __device__ void find_base(int32_t frame) {
    FieldView field = a_.base;
    field.vectors += static_cast<int64_t>(frame) * a_.base_blocks;
    const auto at_half = [&](int axis) {
      const int32_t centre = 2 * start_[axis] + a_.block[axis] - 1;
      return axis_weights_at_half(field.axes[axis], field.border, centre);
    };
    base_at_centre_ = field_q16(field_sum(field, at_half(0), at_half(1), at_half(2)));
    for_voxels([&](const Vec3i& voxel, int32_t i) {
      const Vec3i at = start_ + voxel;
      const auto weights = [&](int axis) {
        return axis_weights(field.axes[axis], field.border, at[axis]);
      };
      base_[i] = field_units(field_sum(field, weights(0), weights(1), weights(2)));
    });
  }

  template <bool kOdd>
  __device__ static uint32_t mask_word(uint32_t word) {
    return kOdd ? __byte_perm(shared_words[word], shared_words[word + 1], 0x5432)
                : shared_words[word];
  }

  /// Blocks of 16 x 16 voxels: a warp takes four rows at a time.
  template <bool kOdd, class Sink>
  __device__ static void visit_usual(const PlaneWalk& walk, const Sink& sink) {
    constexpr int32_t kPairs = kUsual / 2, kRuns = 32 / kPairs, kSteps = kUsual / kRuns;
    const auto lane = static_cast<uint32_t>(threadIdx.x % 32);
    uint32_t c = walk.contrast + lane;
    uint32_t m = walk.mask + lane / kPairs * walk.mask_row + lane % kPairs;
    const uint32_t step = kRuns * walk.mask_row;
    for (int32_t plane = 0; plane < walk.planes; plane += kTogether) {
      uint32_t contrast[kTogether][kSteps], mask[kTogether][kSteps];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
          contrast[k][i] = shared_words[c + (k * kSteps + i) * 32];
          mask[k][i] = mask_word<kOdd>(m + k * walk.mask_plane + i * step);
        }
      }
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) sink(contrast[k][i], mask[k][i]);
      }
      c += kTogether * kSteps * 32;
      m += kTogether * walk.mask_plane;
    }
  }

  /// Blocks of any size.
  template <bool kOdd, class Sink>
  __device__ static void visit_any(const PlaneWalk& walk, const Sink& sink) {
    const int32_t lane = static_cast<int32_t>(threadIdx.x % 32), lanes = 1 << walk.lanes_log2;
    for (int32_t plane = 0; plane < walk.planes; ++plane) {
      for (int32_t row = lane >> walk.lanes_log2; row < walk.rows; row += 32 >> walk.lanes_log2) {
        const uint32_t c = walk.contrast + (plane * walk.rows + row) * walk.pairs;
        const uint32_t m = walk.mask + plane * walk.mask_plane + row * walk.mask_row;
        for (int32_t pair = lane & (lanes - 1); pair < walk.pairs; pair += lanes) {
          sink(shared_words[c + pair], mask_word<kOdd>(m + pair));
        }
      }
    }
  }

  const VolumeArguments& a_;
  const VolumeTile& tile_;
  const MaskView mask_;
  Vec3i* base_;  // by voxel of the block, units
  const uint16_t* contrast_ = nullptr;
  Vec3i start_{}, base_at_centre_{};
  int32_t mask_x_ = 0, mask_y_ = 0;  // first sample of the planes of the mask
};

}  // namespace larch::dsa::cuda
