// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/levelset/brick_entry.cuh"

// Which bricks a step computes: a bit per brick. A step reads one set of bits, sets those of the
// next step in another, and clears a third. Setting a bit needs no answer from memory, and no brick
// is listed twice; in turn each block of threads reads all bits to learn which bricks are its own,
// 4 kB for 256^3 voxels and 256 kB for 1024^3.
namespace larch::levelset::cuda {

constexpr uint32_t kWordBits = 32;
/// Words of a row of bricks along x, and of a field: rows one after the other, each from a new
/// word.
LARCH_HD uint32_t row_words(const BrickLayout& layout) {
  return (static_cast<uint32_t>(layout.count.x) + kWordBits - 1) / kWordBits;
}
LARCH_HD uint32_t active_words(const BrickLayout& layout) {
  return row_words(layout) * static_cast<uint32_t>(layout.count.y * layout.count.z);
}
/// Returns the word of a brick in its field; its bit is x % kWordBits.
LARCH_HD uint32_t active_word(const BrickLayout& layout, const Vec3i& brick) {
  return row_words(layout) * static_cast<uint32_t>(brick.y + layout.count.y * brick.z) +
         static_cast<uint32_t>(brick.x) / kWordBits;
}
/// Returns the brick of the first bit of a word.
LARCH_HD Vec3i first_brick(const BrickLayout& layout, uint32_t word) {
  const uint32_t row = word / row_words(layout);
  const auto count_y = static_cast<uint32_t>(layout.count.y);
  return {static_cast<int32_t>((word - row * row_words(layout)) * kWordBits),
          static_cast<int32_t>(row % count_y), static_cast<int32_t>(row / count_y)};
}

/// The three sets of bits of a launch, one after the other. In each the fields follow one another,
/// from FieldView::first_word on.
struct ActiveBits {
  uint32_t* words;  ///< of the first set
  uint32_t count;   ///< of words in a set

  /// The set that a step reads; those of the two after it are set and cleared. `turn`: the number
  /// of the step modulo 3.
  __device__ uint32_t* set(uint32_t turn) const {
    return words + static_cast<size_t>(turn < 3 ? turn : turn - 3) * count;
  }
};

/// Where a brick changes if a voxel does: bit 0 anywhere, then the lowest and highest x, y, z.
__device__ inline uint32_t faces_of(uint32_t voxel) {
  constexpr int32_t kLast = kBrick - 1;
  const Vec3i at = place_in_brick(voxel);
  uint32_t faces = 1;
  if (at.x == 0) faces |= 2;
  if (at.x == kLast) faces |= 4;
  if (at.y == 0) faces |= 8;
  if (at.y == kLast) faces |= 16;
  if (at.z == 0) faces |= 32;
  if (at.z == kLast) faces |= 64;
  return faces;
}

/// Sets bits of up to three bricks of a row: bit 1 of `three` is `brick`.
__device__ inline void set_active(uint32_t* words, const FieldView& view, const Vec3i& brick,
                                  uint32_t three) {
  const uint64_t spread = static_cast<uint64_t>(three) << (brick.x + kWordBits - 1) % kWordBits;
  const auto low = static_cast<uint32_t>(spread), high = static_cast<uint32_t>(spread >> 32);
  // The three begin in this word where the one before has its last bit in another.
  uint32_t* word = words + view.first_word + active_word(view.layout, brick);
  const bool begins_before = brick.x % kWordBits == 0;
  if (low != 0) atomicOr(begins_before ? word - 1 : word, low);
  if (high != 0) atomicOr(begins_before ? word : word + 1, high);
}

/// Sets what a changed brick concerns in the next step: itself and its neighbours across faces and
/// edges that a change has reached (faces_of), and itself in the other fields. Called by one warp;
/// a lane has a row of bricks. kAlone: there are no others, and views is not read.
template <bool kAlone>
__device__ void activate(const FieldView& view, const FieldViews& views, const BrickEntry& entry,
                         uint32_t faces, uint32_t lane, uint32_t* words) {
  // Its own row and those across faces and edges.
  constexpr uint32_t kRows = 9;
  if (lane >= kRows) return;
  const Vec3i beside{0, static_cast<int32_t>(lane % 3) - 1, static_cast<int32_t>(lane / 3) - 1};
  const Vec3i at = Vec3i{entry.x(), entry.y(), entry.z()} + beside;
  const Vec3i& count = view.layout.count;
  uint32_t needed = 1;
  if (beside.y != 0) needed |= beside.y < 0 ? 8U : 16U;
  if (beside.z != 0) needed |= beside.z < 0 ? 32U : 64U;
  uint32_t three = 2;
  if (beside.y == 0 || beside.z == 0) {
    if ((faces & 2) != 0 && at.x > 0) three |= 1;
    if ((faces & 4) != 0 && at.x + 1 < count.x) three |= 4;
  }
  const bool is_there = at.y >= 0 && at.z >= 0 && at.y < count.y && at.z < count.z;
  if (is_there && (faces & needed) == needed) set_active(words, view, at, three);
  if constexpr (!kAlone) {
    if (beside.y != 0 || beside.z != 0) return;
#pragma unroll 1
    for (int32_t k = 0; k < views.count; ++k) {
      if (k != entry.field()) set_active(words, views[k], at, 2);
    }
  }
}

/// Deals the active bricks of a step to the blocks of threads, one after the other: the n-th set
/// bit is that of block n % blocks. Which one that is has no influence on any result.
class BrickDeal {
 public:
  /// Bricks that a block is dealt at a time.
  static constexpr uint32_t kMaximum = 256;
  /// Threads of a block.
  static constexpr uint32_t kThreads = 1024;
  /// In shared memory.
  struct alignas(8) Memory {
    uint32_t of_warp[kThreads / 32];  ///< set bits
    BrickEntry first[kThreads];       ///< by thread: the brick of the first bit of its first word
    uint32_t parts[kThreads];         ///< by thread: bits of the parts of its other words with one
    BrickEntry bricks[kMaximum];      ///< those of the block
    uint32_t per_block;               ///< 2^32 / blocks, rounded down
  };

  /// A barrier is needed before anything else.
  __device__ BrickDeal(Memory& memory, const FieldViews& views, uint32_t words)
      : memory_(memory), views_(views) {
    if (threadIdx.x < words) memory_.first[threadIdx.x] = first_of(threadIdx.x);
    if (threadIdx.x == 0) memory_.per_block = UINT32_MAX / gridDim.x;
  }

  /// Starts to read the bits of a step. `thread`: of the block, as in the following.
  __device__ void begin(const uint32_t* words, uint32_t count, uint32_t thread) {
    word_ = thread < count ? __ldcg(words + thread) : 0;
  }

  /// Counts them, and waits for the block.
  __device__ void count(const uint32_t* words, uint32_t count, uint32_t thread) {
    own_ = static_cast<uint32_t>(__popc(word_));
    if (count > kThreads) count_rest(words, count, thread);
    of_warp_ = __reduce_add_sync(kAllLanes, own_);
    if (thread % 32 == 0) memory_.of_warp[thread / 32] = of_warp_;
    __syncthreads();
  }

  /// Puts up to kMaximum of the block's bricks, from the `turn`-th on, where all its threads see
  /// them. `count`: of words. True, for all threads of the block, where `is_on` is for one of them.
  __device__ bool deal(const uint32_t* words, uint32_t count, uint32_t thread, uint32_t turn,
                       bool is_on) const {
    const uint32_t lane = thread % 32, warp = thread / 32;
    if (of_warp_ != 0) {
      uint32_t number = sum_up_to_lane(own_, lane) - own_;
      number += __reduce_add_sync(kAllLanes, lane < warp ? memory_.of_warp[lane] : 0);
      take(word_, thread, number, turn);
      if (count > kThreads) deal_rest(words, count, thread, number, turn);
    }
    return __syncthreads_or(is_on) != 0;
  }

  /// Bricks of the block in this step. Called by whole warps.
  __device__ uint32_t bricks(uint32_t lane) const {
    const uint32_t all = __reduce_add_sync(kAllLanes, memory_.of_warp[lane]);
    // Those of the block are its number, and every so many blocks after it.
    return quotient_of(all + gridDim.x - 1 - blockIdx.x);
  }
  __device__ const BrickEntry& brick(uint32_t at) const { return memory_.bricks[at]; }

 private:
  /// A thread's words after its first one are in 32 parts at most, so that it reads those again
  /// that have a set bit, and few others.
  __device__ static uint32_t words_per_part(uint32_t count) {
    return (count - 1) / (kThreads * 32) + 1;
  }
  /// Counts the bits of this thread's words after its first one, eight of which are read at a time.
  __device__ void count_rest(const uint32_t* words, uint32_t count, uint32_t thread) {
    constexpr uint32_t kAtATime = 8;
    const uint32_t each = words_per_part(count);
    uint32_t parts = 0;
#pragma unroll 1
    for (uint32_t i = 0; thread + (i + 1) * kThreads < count; i += kAtATime) {
      uint32_t read[kAtATime];
#pragma unroll
      for (uint32_t k = 0; k < kAtATime; ++k) {
        const uint32_t w = thread + (i + k + 1) * kThreads;
        read[k] = w < count ? __ldcg(words + w) : 0;
      }
#pragma unroll
      for (uint32_t k = 0; k < kAtATime; ++k) {
        own_ += static_cast<uint32_t>(__popc(read[k]));
        if (read[k] != 0) parts |= 1U << (i + k) / each;
      }
    }
    memory_.parts[thread] = parts;
  }
  /// Takes what is the block's of the same words. `number`: of their first set bit.
  __device__ void deal_rest(const uint32_t* words, uint32_t count, uint32_t thread, uint32_t number,
                            uint32_t from_turn) const {
    const uint32_t each = words_per_part(count);
#pragma unroll 1
    for (uint32_t parts = memory_.parts[thread]; parts != 0; parts &= parts - 1) {
      const uint32_t part = first_bit(parts);
#pragma unroll 1
      for (uint32_t i = part * each; i < (part + 1) * each; ++i) {
        const uint32_t w = thread + (i + 1) * kThreads;
        if (w < count) take(__ldcg(words + w), w, number, from_turn);
      }
    }
  }

  /// number / blocks.
  __device__ uint32_t quotient_of(uint32_t number) const {
    // The product is right, or one too small.
    const uint32_t quotient = __umulhi(number, memory_.per_block);
    return quotient + (number - quotient * gridDim.x >= gridDim.x ? 1 : 0);
  }

  /// Takes what is the block's of a word. `number`: of its first set bit, then of the next word's.
  __device__ void take(uint32_t word, uint32_t at, uint32_t& number, uint32_t from_turn) const {
    if (word == 0) return;
    auto count = static_cast<uint32_t>(__popc(word));
    uint32_t turn = quotient_of(number);
    const uint32_t place = number - turn * gridDim.x;
    uint32_t skip = blockIdx.x - place;
    if (blockIdx.x < place) skip += gridDim.x, ++turn;
    number += count;
#pragma unroll 1
    while (skip < count) {
      count -= skip + 1;
#pragma unroll 1
      for (; skip > 0; --skip) word &= word - 1;
      if (turn >= from_turn && turn - from_turn < kMaximum) {
        const BrickEntry first = at < kThreads ? memory_.first[at] : first_of(at);
        memory_.bricks[turn - from_turn] = entry_of(first, first_bit(word));
      }
      word &= word - 1;
      skip = gridDim.x - 1;
      ++turn;
    }
  }

  /// The brick of the first bit of a word, inner if it is one along y and z.
  __device__ BrickEntry first_of(uint32_t word) const {
    const BrickLayout& layout = views_[0].layout;
    uint32_t field = 0;
    if (views_.count > 1) {
      field = word / active_words(layout);
      word -= field * active_words(layout);
    }
    const Vec3i first = first_brick(layout, word);
    BrickEntry entry = brick_entry(layout, first, static_cast<int32_t>(field));
    if (is_inner_row(layout, first)) entry.z_field |= BrickEntry::kInner;
    return entry;
  }
  /// Returns the brick of another bit of the same word, whose first brick is `first`.
  __device__ BrickEntry entry_of(const BrickEntry& first, uint32_t bit) const {
    const int32_t x = first.x() + static_cast<int32_t>(bit);
    const bool is_inner = x > 0 && x + 1 < views_[0].layout.count.x;
    return {first.number + bit, first.x_y + bit,
            is_inner ? first.z_field : first.z_field & ~BrickEntry::kInner};
  }

  Memory& memory_;
  const FieldViews views_;
  uint32_t word_ = 0;     ///< this thread's first one
  uint32_t own_ = 0;      ///< set bits of this thread's words
  uint32_t of_warp_ = 0;  ///< of the warp's
};

}  // namespace larch::levelset::cuda
