// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/async_copy.cuh"
#include "cuda/core/check.cuh"
#include "cuda/levelset/active_bricks.cuh"
#include "cuda/levelset/brick_stencil.cuh"
#include "cuda/levelset/brick_voxels.cuh"
#include "cuda/levelset/device_job.cuh"

// One launch makes all steps: blocks of threads that stay, and meet once a step. A block lists the
// voxels that its bricks have to write, from bits, and its warps take them from the list, 32 at a
// time, whatever bricks they are of. Of few bricks it reads phi whole meanwhile; of more, the lanes
// read what is around their voxels.
namespace larch::levelset::cuda {
namespace {

constexpr uint32_t kThreads = BrickDeal::kThreads, kWarps = kThreads / 32;

struct BrickRun {
  JobView job;
  uint32_t slots;   ///< bricks whose voxels are listed at a time
  uint32_t staged;  ///< bricks that are read whole, if a block has no more of them
  ActiveBits active;
  uint32_t turn;   ///< of step 0: ActiveBits::set
  FieldView only;  ///< where there is one field, without edges: its view, nearer to the threads
};

/// Shared memory of a block of threads.
struct BlockMemory {
  BrickDeal::Memory* deal;
  Progress* progress;  ///< the same in every block
  int64_t* inside;     ///< by field, as the following
  FieldView* views;
  BlockCount* counts;  ///< 0 between steps
  BrickVoxels* voxels;

  __device__ BlockMemory(char* shared, int32_t fields)
      : deal(reinterpret_cast<BrickDeal::Memory*>(shared)),
        progress(reinterpret_cast<Progress*>(deal + 1)),
        inside(reinterpret_cast<int64_t*>(progress + 1)),
        views(reinterpret_cast<FieldView*>(inside + fields)),
        counts(reinterpret_cast<BlockCount*>(views + fields)),
        voxels(
            reinterpret_cast<BrickVoxels*>(shared + before_voxels(static_cast<size_t>(fields)))) {}
  LARCH_HD static constexpr size_t before_voxels(size_t fields) {
    // Each part begins where the one before ends, but for the voxels.
    static_assert(sizeof(BrickDeal::Memory) % alignof(Progress) == 0 &&
                  sizeof(Progress) % alignof(int64_t) == 0 &&
                  sizeof(int64_t) % alignof(FieldView) == 0 &&
                  sizeof(FieldView) % alignof(BlockCount) == 0 && alignof(BrickVoxels) <= 16);
    const size_t each = sizeof(int64_t) + sizeof(FieldView) + sizeof(BlockCount);
    return (sizeof(BrickDeal::Memory) + sizeof(Progress) + fields * each + 15) / 16 * 16;
  }
  static size_t bytes(uint32_t slots, size_t fields) {
    return before_voxels(fields) + BrickVoxels::bytes(slots);
  }
  /// `only`: BrickRun::only, or null.
  __device__ void load(const JobView& job, const FieldView* only) const {
    for (auto f = static_cast<int32_t>(threadIdx.x); f < job.views.count; f += kThreads) {
      views[f] = job.views[f];
      inside[f] = job.inside[f];
      counts[f] = {};
    }
    if (threadIdx.x == 0) *progress = *job.progress;
    voxels->begin(only);
    __syncthreads();
  }
};

/// Where the shared memory of a block begins, held in a register: otherwise the assembler would
/// make it again at each use from a special register, which is slow to read.
__device__ inline char* address_in_register(char* shared) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  return static_cast<char*>(__cvta_shared_to_generic(in_register(address)));
}

/// A block of threads. kOnly: BrickRun::only is the field.
template <bool kOnly>
class BrickBlock {
 public:
  __device__ BrickBlock(const BrickRun& run, const BlockMemory& memory)
      : run_(run),
        memory_(memory),
        views_{memory.views, kOnly ? 1 : run.job.views.count},
        deal_(*memory.deal, views_, run.active.count),
        lane_(in_register(threadIdx.x % 32)),
        warp_(in_register(threadIdx.x / 32)),
        turn_(run.turn) {
    __syncthreads();
  }

  /// Deals the active bricks of a step, from the block's `first` one on; before that, ends the step
  /// before. False where the job does not go on, or all steps are done.
  __device__ bool begin(int32_t step, uint32_t first) {
    // What comes from memory is asked for first, and what needs none of it is done meanwhile.
    const uint32_t *active = run_.active.set(turn_), count = run_.active.count;
    deal_.begin(active, count, number());
    StepCount last;
    const bool is_new = first == 0, ends_step = is_new && step > 0;
    const bool decides = ends_step && number() == kThreads - 1;
    if (kOnly && decides) last = read_count(counts(step - 1));
    if (is_new) clear(run_.active.set(turn_ + 2));
    deal_.count(active, count, number());
    bricks_ = deal_.bricks(lane_);
    bool is_on = !ends_step;
    if (decides) is_on = end_step(step - 1, last);
    return deal_.deal(active, count, number(), first, is_on) && step < run_.job.steps;
  }

  /// A step of the bricks that were dealt from the block's `first` one on. True where there are
  /// more of them.
  __device__ bool take(int32_t step, uint32_t first) {
    const uint32_t left = bricks_ > first ? bricks_ - first : 0,
                   dealt = min(left, BrickDeal::kMaximum);
    for (uint32_t at = 0; at < dealt; at += run_.slots) {
      const uint32_t bricks = min(dealt - at, run_.slots);
      const bool is_staged = dealt <= run_.staged;
      if (is_staged) {
        list_few(step, bricks);
      } else {
        list_many(step, at, bricks);
      }
      __syncthreads();
      move_listed(step, is_staged);
      __syncthreads();
      for (uint32_t s = warp_; s < bricks; s += kWarps) finish(step, memory_.voxels->slots[s]);
      // By the last warp first, since the first ones have most to finish.
      for (auto f = static_cast<int32_t>(kWarps - 1 - warp_); f < views_.count; f += kWarps) {
        memory_.counts[f].move_to(counts(step)[f], lane_);
      }
    }
    return left > BrickDeal::kMaximum;
  }

  /// Goes on to the next step.
  __device__ void end() { turn_ = turn_ == 2 ? 0 : turn_ + 1; }

 private:
  /// Holds what a lane reads of a brick before a step.
  struct ReadBits {
    LaneBits clamped;
    uint32_t unequal;  ///< what may differ in its two buffers
  };

  /// Of the thread in the block.
  __device__ uint32_t number() const { return warp_ * 32 + lane_; }

  /// Each warp clears 32 words side by side, and first one of every block, so that none has more to
  /// do than the others.
  __device__ void clear(uint32_t* words) const {
    const uint32_t first = (blockIdx.x + warp_ * gridDim.x) * 32 + lane_;
    for (uint32_t w = first; w < run_.active.count; w += kThreads * gridDim.x) words[w] = 0;
  }

  __device__ const FieldView& view_of(int32_t field) const {
    return kOnly ? run_.only : memory_.views[field];
  }
  /// Tells whether a step reads phi from the second buffer.
  __device__ bool reads_second(int32_t step) const { return run_.job.side_in(step) != 0; }
  __device__ StepCount* counts(int32_t step) const {
    return run_.job.counts + int64_t{step} * views_.count;
  }

  /// Decides whether the job goes on after a step. `only`: the counts of the step where kOnly.
  __device__ bool end_step(int32_t step, const StepCount& only) const {
    StepSum sum;
    if (kOnly) {
      sum.add(only, *memory_.inside);
    } else {
      add_fields(sum, counts(step), memory_.inside, views_.count);
    }
    *memory_.progress = advanced(*memory_.progress, sum, run_.job.rules);
    return memory_.progress->stop == Stop::kNone;
  }

  /// Reads the bits of a brick before a step.
  __device__ ReadBits read(int32_t step, const BrickEntry& brick, uint32_t lane) const {
    const FieldView& view = view_of(brick.field());
    const uint32_t* clamped = reads_second(step) ? view.clamped[1] : view.clamped[0];
    const LaneOffsets offsets =
        kOnly ? memory_.voxels->offsets[lane] : lane_offsets(view.layout, lane);
    return {read_bits(view.layout, offsets, clamped, brick, lane),
            view.unequal[int64_t{brick.number} * kVoxelWords + lane % kVoxelWords]};
  }
  /// Starts to read all of a brick.
  __device__ void fetch(int32_t step, const BrickEntry& brick, StagedBrick& to, const Share& share,
                        uint32_t lane) const {
    const FieldView& view = view_of(brick.field());
    const auto row_at = [&](uint32_t row) {
      return kOnly ? memory_.voxels->rows[row] : row_of_halo(view.layout, row);
    };
    to.fetch(view, reads_second(step) ? view.phi[1] : view.phi[0], brick, row_at, share, lane);
  }

  /// Returns the lane, anew: so what follows from it takes no registers during other parts of a
  /// step.
  __device__ uint32_t lane_anew() const {
    return __shfl_sync(kAllLanes, lane_, static_cast<int>(lane_));
  }
  /// Lists the voxels that a step has to write, of `bricks` of those that were dealt: a warp has a
  /// brick.
  __device__ void list_many(int32_t step, uint32_t first, uint32_t bricks) {
    const uint32_t lane = lane_anew();
#pragma unroll 1
    for (uint32_t s = warp_; s < bricks; s += kWarps) {
      const BrickEntry brick = deal_.brick(first + s);
      __syncwarp();  // other lanes may still finish what was in the slot
      list(step, brick, s, {1, 0}, lane);
    }
  }
  /// The same where there are at most kMaximumStaged: of the warps that share a brick, half list
  /// its voxels and half read all of it.
  __device__ void list_few(int32_t step, uint32_t bricks) {
    constexpr uint32_t kSharing = kWarps / kMaximumStaged, kHalf = kSharing / 2;
    static_assert(16 % kHalf == 0);
    const uint32_t lane = lane_anew(), s = warp_ / kSharing, part = warp_ % kSharing;
    if (s >= bricks) return;
    const BrickEntry brick = deal_.brick(s);
    if (part < kHalf) {
      list(step, brick, s, {kHalf, part}, lane);
    } else {
      fetch(step, brick, memory_.voxels->staged()[s], {kHalf, part - kHalf}, lane);
      larch::cuda::wait_for_copies();
    }
  }

  /// Lists a warp's share of a brick: voxels that may move, and those that may have moved in the
  /// last step, which wrote them to one buffer alone. `at`: the slot.
  __device__ void list(int32_t step, const BrickEntry& brick, uint32_t at, const Share& share,
                       uint32_t lane) {
    BrickVoxels& voxels = *memory_.voxels;
    BrickSlot& slot = voxels.slots[at];
    const bool is_first = share.part == 0;
    if (is_first && lane == 0) slot.entry = brick;
    const ReadBits bits = read(step, brick, lane);
    const uint32_t moving = moving_voxels(bits.clamped, kOnly || views_.count == 1, lane);
    const uint32_t all = moving | bits.unequal;
    if (is_first) {
      if (lane == 0) {
        slot.faces = 0;
        memory_.counts[brick.field()].add_active(1);
      }
      slot.clamped[lane] = bits.clamped.own & ~all;
      if (lane < kVoxelWords) slot.moving[lane] = moving;
    }
    // Of several fields a warp counts one at a time.
    voxels.add<!kOnly>(all, at, share, lane, round_);
  }

  /// Computes the listed voxels.
  __device__ void move_listed(int32_t step, bool is_staged) {
    BrickVoxels& voxels = *memory_.voxels;
    const uint32_t all = voxels.counts[round_];
    round_ ^= 1;
    if (number() == 0) voxels.counts[round_] = 0;
    LaneCount count;
    int32_t counted = 0;  // the field of it
#pragma unroll 1
    for (uint32_t first = warp_ * 32; first < all; first += kThreads) {
      const uint32_t at = first + lane_;
      const uint32_t listed = at < all ? voxels.voxels()[at] : BrickVoxels::kNone;
      if (!kOnly) {
        const int32_t field = voxels.slots[voxels.voxels()[first] / kBrickVoxels].entry.field();
        if (field != counted) add_counts(counted, count);
        counted = field;
      }
      const uint32_t faces =
          listed == BrickVoxels::kNone ? 0 : move(step, listed, is_staged, count);
      voxels.add_faces(listed / kBrickVoxels, faces, lane_);
    }
    add_counts(counted, count);
  }

  /// Computes a voxel. Gives the faces of its brick that a change reaches (BrickSlot::faces).
  __device__ uint32_t move(int32_t step, uint32_t listed, bool is_staged, LaneCount& count) const {
    BrickSlot& slot = memory_.voxels->slots[listed / kBrickVoxels];
    const BrickEntry brick = slot.entry;
    const uint32_t voxel = listed % kBrickVoxels;
    const FieldView& view = view_of(brick.field());
    const bool second = reads_second(step);
    const int64_t at = brick.first_voxel() + voxel;
    Stencil<float> stencil;
    int16_t speed = 0;
    if (is_staged) {
      const StagedBrick& staged = memory_.voxels->staged()[listed / kBrickVoxels];
      stencil = staged.stencil(voxel);
      speed = staged.speed[voxel];
    } else {
      stencil = stencil_of(view.layout, second ? view.phi[1] : view.phi[0], brick, voxel);
      speed = view.speeds.speed[at];
    }
    const float before = stencil.centre;
    const float after =
        next_value<kOnly>(view, views_, brick.field(), second ? 1 : 0, at, stencil, speed);
    (second ? view.phi[0] : view.phi[1])[at] = after;
    uint32_t* clamped = slot.clamped + voxel / 32;
    if (after == kClamp) atomicOr(clamped, 1U << voxel % 32);
    if (after == -kClamp) atomicOr(clamped + kVoxelWords, 1U << voxel % 32);
    if (__float_as_uint(before) == __float_as_uint(after)) return 0;
    count.add(before, after);
    return faces_of(voxel);
  }

  /// Writes the bits of a brick, and sets what its changes concern. Called by one warp.
  __device__ void finish(int32_t step, const BrickSlot& slot) {
    const uint32_t lane = lane_anew();
    const BrickEntry brick = slot.entry;
    const FieldView& view = view_of(brick.field());
    const uint32_t faces = slot.faces;
    if (faces != 0) {
      activate<kOnly>(view, views_, brick, faces, lane, run_.active.set(turn_ + 1));
    }
    uint32_t* clamped = view.clamped[reads_second(step) ? 0 : 1];
    clamped[int64_t{brick.number} * kClampedWords + lane] = slot.clamped[lane];
    if (lane < kVoxelWords) {
      view.unequal[int64_t{brick.number} * kVoxelWords + lane] = slot.moving[lane];
    }
  }

  /// Adds what this warp has counted to the counts of the block, and begins anew.
  __device__ void add_counts(int32_t field, LaneCount& count) const {
    if (__any_sync(kAllLanes, count.changed != 0) == 0) return;
    memory_.counts[field].add(total_of(count), lane_);
    count = {};
  }

  const BrickRun& run_;
  const BlockMemory& memory_;
  const FieldViews views_;
  BrickDeal deal_;
  const uint32_t lane_;
  const uint32_t warp_;
  uint32_t turn_;        ///< ActiveBits::set of this step
  uint32_t bricks_ = 0;  ///< of the block in this step
  uint32_t round_ = 0;   ///< BrickVoxels::counts that is in use
};

template <bool kOnly>
__global__ void __launch_bounds__(kThreads, 1) bricks_kernel(const __grid_constant__ BrickRun run) {
  extern __shared__ __align__(16) char shared[];
  const BlockMemory memory(address_in_register(shared), kOnly ? 1 : run.job.views.count);
  memory.load(run.job, kOnly ? &run.only : nullptr);
  const auto grid = cooperative_groups::this_grid();
  BrickBlock<kOnly> block(run, memory);
  uint32_t first = 0;
  for (int32_t step = 0; block.begin(step, first);) {
    if (block.take(step, first)) {
      first += BrickDeal::kMaximum;
      continue;
    }
    block.end();
    grid.sync();
    first = 0;
    ++step;
  }
  if (blockIdx.x != 0) return;
  for (auto f = static_cast<int32_t>(threadIdx.x); f < run.job.views.count; f += kThreads) {
    run.job.inside[f] = memory.inside[f];
  }
  if (threadIdx.x == 0) *run.job.progress = *memory.progress;
}

/// As many slots as fit the shared memory of a block; one where none does, so that the launch tells
/// what is missing.
uint32_t most_slots(size_t fields, const Device& device) {
  uint32_t slots = kMaximumSlots;
  const size_t most = most_shared_bytes(device);
  while (slots > 1 && BlockMemory::bytes(slots, fields) > most) --slots;
  return slots;
}

/// The active bricks of a job on the device, and what is launched.
class ActiveBricks {
 public:
  explicit ActiveBricks(DeviceJob& job) : job_(job), device_(job.context().device) {
    kernel_ = job.is_plain() ? reinterpret_cast<const void*>(bricks_kernel<true>)
                             : reinterpret_cast<const void*>(bricks_kernel<false>);
    const auto fields = static_cast<size_t>(job.fields());
    slots_ = most_slots(fields, device_);
    bytes_ = BlockMemory::bytes(slots_, fields);
    blocks_ = cooperative_blocks(kernel_, kThreads, bytes_, job.job().most_blocks, device_);
    count_ = static_cast<uint32_t>(fields) * active_words(job.view(0).layout);
    words_ = Buffer<uint32_t>(device_, 3 * size_t{count_});
    words_.set_zero();
  }

  /// What the first step computes: found, or given by the job.
  void begin() {
    first_set(job_, Listed::kBricks, active().words);
    std::vector<uint32_t> words = download();
    for (int32_t f = 0; f < job_.fields(); ++f) {
      for (const uint32_t brick : job_.active(f)) {
        const FieldView& view = job_.view(f);
        const Vec3i at = view.layout.brick_at(brick);
        words[view.first_word + active_word(view.layout, at)] |= 1U << at.x % kWordBits;
      }
    }
    words_.upload(words, turn_ * size_t{count_});
    find_clamped(job_);
  }

  void run(int64_t steps) {
    BrickRun run{};
    run.job = job_.begin(steps);
    run.slots = slots_;
    run.staged = BrickVoxels::most_staged(slots_);
    run.active = active();
    run.turn = turn_;
    run.only = job_.view(0);
    void* arguments[] = {&run};
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(kThreads), arguments,
                                                 bytes_, larch::cuda::stream_of(device_)));
    larch::cuda::check_launch("levelset bricks_kernel");
    job_.finish();
    turn_ = static_cast<uint32_t>((turn_ + steps) % 3);
  }

  /// Gives the job what the next step computes.
  void finish() {
    const std::vector<uint32_t> words = download();
    for (int32_t f = 0; f < job_.fields(); ++f) {
      const FieldView& view = job_.view(f);
      job_.active(f).clear();
      for (uint32_t w = 0; w < active_words(view.layout); ++w) {
        const int64_t first = view.layout.brick_of(first_brick(view.layout, w));
        for (uint32_t word = words[view.first_word + w]; word != 0; word &= word - 1) {
          job_.active(f).push_back(static_cast<uint32_t>(first + std::countr_zero(word)));
        }
      }
    }
  }

 private:
  ActiveBits active() { return {words_.data(), count_}; }
  /// Returns the bits of the next step.
  std::vector<uint32_t> download() {
    std::vector<uint32_t> words(count_);
    words_.download(words, turn_ * size_t{count_});
    return words;
  }

  DeviceJob& job_;
  const Device& device_;
  const void* kernel_ = nullptr;
  size_t bytes_ = 0;
  uint32_t slots_ = 0, blocks_ = 0;
  uint32_t count_ = 0;        ///< words of a set of bits
  Buffer<uint32_t> words_{};  ///< three sets of bits
  uint32_t turn_ = 0;         ///< ActiveBits::set of the next step
};

}  // namespace

void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  DeviceJob on_device(job, Listed::kBricks, context);
  evolve_active<ActiveBricks>(on_device, steps);
}

}  // namespace larch::levelset::cuda
