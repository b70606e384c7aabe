// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstddef>
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "cuda/levelset/active_bricks.cuh"
#include "cuda/levelset/device_job.cuh"

// One launch makes all steps: blocks of threads that stay, and meet once a step.
namespace larch::levelset::cuda {
namespace {

/// Threads of the smallest group.
constexpr uint32_t kGroupThreads = 32 * kLeastWarps;
constexpr uint32_t kMostGroups = BrickDeal::kMostThreads / kGroupThreads;
/// Fields of one launch, unless a group has more.
constexpr size_t kMostFields = 64;

struct BrickRun {
  const FieldView* views;
  FieldProgress* progress;
  int32_t fields;
  int32_t steps;
  ActiveBits active;
  uint32_t turn;      ///< of step 0: ActiveBits::set
  StepCount* counts;  ///< by step and field
  StopRules rules;
  FieldView only;  ///< where there is one field, without edges: the same, nearer to the threads
};

/// What the warps of a block counted of one field in a step. Squares are in three pieces of 24
/// bits, whose sums over warps fit 32.
struct BlockCount {
  static constexpr uint32_t kValues = 7, kPieceBits = 24;
  uint32_t values[kValues];

  /// Adds the counts of a warp, which calls it.
  __device__ void add(const StepCount& of_warp, uint32_t lane) {
    const uint64_t squares = of_warp.squares;
    uint32_t value = of_warp.active;
    if (lane == 1) value = of_warp.changed;
    if (lane == 2) value = of_warp.flipped;
    if (lane == 3) value = static_cast<uint32_t>(of_warp.grown);
    if (lane >= 4 && lane < kValues) {
      value = static_cast<uint32_t>(squares >> kPieceBits * (lane - 4)) & ((1U << kPieceBits) - 1);
    }
    if (lane < kValues && value != 0) atomicAdd(values + lane, value);
  }
  /// Adds all of it to the counts of a step, and makes it 0. Called by one warp.
  __device__ void move_to(StepCount& total, uint32_t lane) {
    const uint32_t value = lane < kValues ? values[lane] : 0;
    if (value == 0) return;
    values[lane] = 0;
    constexpr uint32_t kSquares = 4;
    static_assert(offsetof(StepCount, changed) == 4 && offsetof(StepCount, flipped) == 8 &&
                  offsetof(StepCount, grown) == 12 && offsetof(StepCount, squares) == 16);
    if (lane >= kSquares) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&total.squares),
                static_cast<unsigned long long>(value) << kPieceBits * (lane - kSquares));
    } else {
      atomicAdd(reinterpret_cast<uint32_t*>(&total) + lane, value);
    }
  }
};

/// Shared memory of a group of warps.
struct BrickGroup {
  BrickHalo bricks[2];
  HaloCopy copies[kCopies];
  MovingVoxels moving;
  BrickEntry last;  ///< that it computed last, if has_last
  uint32_t has_last;
  BrickDone done;
  uint32_t next;   ///< the number of its next brick among those that the block was dealt
  int32_t copied;  ///< the field of its copies
};

/// Shared memory of a block of threads. kOnly: there is one field.
template <bool kOnly>
struct BlockMemory {
  BrickDeal::Memory* deal;
  FieldView* views;         ///< by field, as the following
  FieldProgress* progress;  ///< the same in every block
  BlockCount* counts;       ///< 0 between steps
  int32_t* side;            ///< of phi that step 0 reads
  BrickGroup* groups;       ///< as many as groups of the fewest warps

  __device__ BlockMemory(char* shared, int32_t all_fields)
      : deal(reinterpret_cast<BrickDeal::Memory*>(shared)),
        views(reinterpret_cast<FieldView*>(deal + 1)),
        progress(reinterpret_cast<FieldProgress*>(views + (kOnly ? 1 : all_fields))),
        counts(reinterpret_cast<BlockCount*>(progress + (kOnly ? 1 : all_fields))),
        side(reinterpret_cast<int32_t*>(counts + (kOnly ? 1 : all_fields))),
        groups(reinterpret_cast<BrickGroup*>(
            shared + before_groups(kOnly ? 1 : static_cast<size_t>(all_fields)))) {}
  LARCH_HD static constexpr size_t before_groups(size_t fields) {
    // Each part begins where the one before ends, but for the last.
    static_assert(sizeof(BrickDeal::Memory) % alignof(FieldView) == 0 &&
                  sizeof(FieldView) % alignof(FieldProgress) == 0 &&
                  sizeof(FieldProgress) % alignof(BlockCount) == 0 &&
                  sizeof(BlockCount) % alignof(int32_t) == 0 && alignof(BrickGroup) <= 16);
    const size_t each =
        sizeof(FieldView) + sizeof(FieldProgress) + sizeof(BlockCount) + sizeof(int32_t);
    return (sizeof(BrickDeal::Memory) + fields * each + 15) / 16 * 16;
  }
  static size_t bytes(size_t most_groups, size_t fields) {
    return before_groups(fields) + most_groups * sizeof(BrickGroup);
  }
  __device__ void load(const BrickRun& run) const {
    for (auto f = static_cast<int32_t>(threadIdx.x); f < run.fields;
         f += static_cast<int32_t>(blockDim.x)) {
      views[f] = run.views[f];
      progress[f] = run.progress[f];
      counts[f] = {};
      side[f] = side_of(run.progress[f].iterations);
    }
    const uint32_t thread = threadIdx.x % kGroupThreads;
    BrickGroup& group = groups[threadIdx.x / kGroupThreads];
    make_copies(run.views[0].layout, thread, kGroupThreads, group.copies);
    if (thread == 0) {
      group.done = {};
      group.has_last = 0;
      group.copied = 0;
    }
    __syncthreads();
  }
  /// Where phi is read in a step. Running fields make one iteration in each.
  __device__ int32_t side_in(int32_t step, int32_t field) const { return side[field] ^ (step & 1); }
};

/// A block of threads, in groups of warps that take one brick after the other. kOnly:
/// BrickRun::only is the field.
template <bool kOnly>
class BrickBlock {
 public:
  __device__ BrickBlock(const BrickRun& run, const BlockMemory<kOnly>& memory)
      : run_(run),
        memory_(memory),
        deal_(*memory.deal, memory.views, run.fields, run.active.count),
        lane_(in_register(threadIdx.x % 32)),
        warp_(in_register(threadIdx.x / 32)),
        turn_(run.turn) {
    join(kLeastWarps);
    __syncthreads();
  }

  /// Deals the active bricks of a step, from the block's `first` one on; before that, ends the step
  /// before. False where no field goes on, or all steps are done.
  __device__ bool begin(int32_t step, uint32_t first) {
    // What comes from memory is asked for first, and what needs none of it is done meanwhile.
    const uint32_t *active = run_.active.set(turn_), count = run_.active.count;
    deal_.begin(active, count, number());
    StepCount last;
    const bool is_new = first == 0, ends_step = is_new && step > 0;
    const bool decides = kOnly && ends_step && number() == blockDim.x - 1;
    if (decides) last = read_count(counts(step - 1));
    if (is_new) {
      // A group often has the same brick as in the last step.
      if (group_->has_last != 0) fetch(step, group_->last);
      clear(run_.active.set(turn_ + 2));
    }
    deal_.count(active, count, number());
    bool is_on = !ends_step;
    if (kOnly) {
      if (decides) is_on = advance_alone(*memory_.progress, last, run_.rules);
    } else if (ends_step) {
      is_on = end_step(step - 1);
    }
    return deal_.deal(active, count, number(), first, is_on) && step < run_.steps;
  }

  /// A step of the bricks that were dealt from the block's `first` one on. True where there are
  /// more of them.
  __device__ bool take(int32_t step) {
    const BrickDeal::Plan plan = deal_.plan();
    share(plan.sharing);
    take_dealt(step, min(plan.left, BrickDeal::kMost));
    if (plan.left > BrickDeal::kMost) {
      __syncthreads();
      return true;
    }
    return false;
  }

  /// Adds what the block counted in a step to the counts of all.
  __device__ void end(int32_t step) {
    add_counts();
    __syncthreads();
    for (auto f = static_cast<int32_t>(warp_); f < run_.fields;
         f += static_cast<int32_t>(blockDim.x / 32)) {
      memory_.counts[f].move_to(counts(step)[f], lane_);
    }
    turn_ = turn_ == 2 ? 0 : turn_ + 1;
  }

 private:
  /// Of the thread in the block.
  __device__ uint32_t number() const { return warp_ * 32 + lane_; }

  /// Each warp clears 32 words side by side, and first one of every block, so that none has more to
  /// do than the others.
  __device__ void clear(uint32_t* words) const {
    const uint32_t first = (blockIdx.x + warp_ * gridDim.x) * 32 + lane_;
    for (uint32_t w = first; w < run_.active.count; w += blockDim.x * gridDim.x) words[w] = 0;
  }

  __device__ const FieldView& view_of(int32_t field) const {
    return kOnly ? run_.only : memory_.views[field];
  }
  __device__ bool is_running(int32_t field) const {
    return kOnly || memory_.progress[field].stop == Stop::kNone;
  }
  __device__ StepCount* counts(int32_t step) const {
    return run_.counts + int64_t{step} * run_.fields;
  }

  /// Decides which fields go on after a step: for this thread, does one?
  __device__ bool end_step(int32_t step) const {
    bool is_on = false;
    for (auto f = static_cast<int32_t>(number()); f < run_.fields;
         f += static_cast<int32_t>(blockDim.x)) {
      if (memory_.views[f].group_first == f) {
        is_on =
            advance_group(memory_.progress, counts(step), memory_.views[f], run_.rules) || is_on;
      }
    }
    return is_on;
  }

  /// Where there are few bricks, more warps share one.
  __device__ void share(uint32_t sharing) {
    if (sharing == member_.warps) return;
    // What was read ahead is of no use, and must not arrive among what is read now.
    larch::cuda::wait_for_copies();
    __syncthreads();
    if (number() % kGroupThreads == 0) memory_.groups[number() / kGroupThreads].has_last = 0;
    join(sharing);
    __syncthreads();
  }
  /// Makes the warp one of a group of so many.
  __device__ void join(uint32_t warps) {
    const uint32_t shift = first_bit(warps);
    member_ = {warps, warp_ & (warps - 1)};
    number_ = warp_ >> shift;
    groups_ = blockDim.x / 32 >> shift;
    group_ = memory_.groups + number_;
    side_ = 0;
  }
  /// Is this the first thread of its group?
  __device__ bool is_first() const { return member_.number == 0 && lane_ == 0; }
  __device__ void sync() const { sync_group(number_, member_); }
  __device__ BrickLane lane() const { return {lane_, member_}; }

  /// A group's part of `dealt` bricks. While one is computed the next is read.
  __device__ void take_dealt(int32_t step, uint32_t dealt) {
    uint32_t at = number_;
    if (at >= groups_ || at >= dealt) {
      // Nothing is read ahead for the next step, and what was has arrived.
      larch::cuda::wait_for_copies();
      if (is_first() && at < groups_) group_->has_last = 0;
      return;
    }
    if (!is_read_ahead(deal_.brick(at))) read(step, deal_.brick(at));
    while (true) {
      const BrickEntry brick = deal_.brick(at);
      const uint32_t side = side_;
      larch::cuda::wait_for_copies();
      sync();
      // Groups of so many warps have one brick alone.
      const bool lists = member_.warps < kMostWarps;
      const uint32_t next = lists ? list(step, brick, side, dealt) : dealt;
      if (is_running(brick.field())) move(step, brick, side, lists ? &group_->moving : nullptr);
      if (next >= dealt) break;
      at = next;
    }
    if (is_first()) {
      group_->last = deal_.brick(at);
      group_->has_last = 1;
    }
  }

  /// Lists what moves of a brick, and starts to read the next one, whose number is returned; there
  /// is none from `dealt` on.
  __device__ uint32_t list(int32_t step, const BrickEntry& brick, uint32_t side, uint32_t dealt) {
    const FieldView& view = view_of(brick.field());
    const bool is_on = is_running(brick.field());
    lane().look_at_rows(view.step.clamp, group_->bricks[side], group_->moving);
    if (is_on) lane().copy_brick(view, brick, group_->bricks[side], out_of(step, brick));
    if (is_first()) {
      group_->next = groups_ + deal_.take_next();
      group_->moving.count = 0;
    }
    sync();
    const uint32_t next = group_->next;
    if (next < dealt) read(step, deal_.brick(next));
    lane().list_moving(view.layout.size, brick, kOnly || view.group_count == 1, group_->moving);
    sync();
    return next;
  }
  /// Where phi of a brick is written.
  __device__ float* out_of(int32_t step, const BrickEntry& brick) const {
    return view_of(brick.field()).phi[1 - memory_.side_in(step, brick.field())] +
           brick.first_voxel();
  }

  __device__ bool is_read_ahead(const BrickEntry& brick) const {
    const BrickEntry& last = group_->last;
    return group_->has_last != 0 && brick.number == last.number && brick.z_field == last.z_field;
  }
  /// Starts to read a brick into the other halo.
  __device__ void read(int32_t step, const BrickEntry& brick) {
    side_ ^= 1;
    if (!kOnly && brick.field() != group_->copied) {
      sync();
      make_copies(view_of(brick.field()).layout, member_.number * 32 + lane_, member_.warps * 32,
                  group_->copies);
      if (is_first()) group_->copied = brick.field();
      sync();
    }
    fetch(step, brick);
  }
  __device__ void fetch(int32_t step, const BrickEntry& brick) const {
    const FieldView& view = view_of(brick.field());
    lane().fetch(view, view.phi[memory_.side_in(step, brick.field())], brick, group_->copies,
                 group_->bricks[side_]);
  }

  /// A step of the warp's voxels of a brick. The last warp of the group sets what the changes
  /// concern.
  __device__ void move(int32_t step, const BrickEntry& brick, uint32_t side,
                       const MovingVoxels* moving) {
    if (!kOnly && brick.field() != counted_) {
      add_counts();
      counted_ = brick.field();
    }
    const FieldView& view = view_of(brick.field());
    uint32_t faces = lane().template step<kOnly>(view, memory_.views, brick, moving,
                                                 memory_.side_in(step, brick.field()),
                                                 group_->bricks[side], out_of(step, brick), count_);
    if (member_.number == 0) ++active_;
    if (lane_ == 0) faces = group_->done.add(faces, member_.warps);
    faces = __shfl_sync(kAllLanes, faces, 0);
    if (faces != 0) {
      activate<kOnly>(view, memory_.views, brick, faces, lane_, run_.active.set(turn_ + 1));
    }
  }

  /// Adds what this warp has counted to the counts of the block.
  __device__ void add_counts() {
    const bool has_changed = __any_sync(kAllLanes, count_.changed != 0) != 0;
    if (!has_changed && active_ == 0) return;
    StepCount count = has_changed ? total_of(count_) : StepCount{};
    count.active = active_;
    memory_.counts[counted_].add(count, lane_);
    count_ = {};
    active_ = 0;
  }

  const BrickRun& run_;
  const BlockMemory<kOnly>& memory_;
  BrickDeal deal_;
  const uint32_t lane_;
  const uint32_t warp_;
  uint32_t turn_;  ///< ActiveBits::set of this step
  Member member_{};
  uint32_t number_ = 0, groups_ = 0;  ///< of the group, and how many there are
  BrickGroup* group_ = nullptr;
  uint32_t side_ = 0;  ///< the halo of the brick that was read last
  LaneCount count_{};
  uint32_t active_ = 0;  ///< bricks, by warp
  int32_t counted_ = 0;  ///< the field of both
};

template <bool kOnly>
__global__ void __launch_bounds__(BrickDeal::kMostThreads, 1)
    bricks_kernel(const __grid_constant__ BrickRun run) {
  extern __shared__ __align__(16) char shared[];
  const BlockMemory<kOnly> memory(shared, run.fields);
  memory.load(run);
  const auto grid = cooperative_groups::this_grid();
  BrickBlock<kOnly> block(run, memory);
  uint32_t first = 0;
  for (int32_t step = 0; block.begin(step, first);) {
    if (block.take(step)) {
      first += BrickDeal::kMost;
      continue;
    }
    block.end(step);
    grid.sync();
    first = 0;
    ++step;
  }
  if (blockIdx.x != 0) return;
  for (auto f = static_cast<int32_t>(threadIdx.x); f < run.fields;
       f += static_cast<int32_t>(blockDim.x)) {
    run.progress[f] = memory.progress[f];
  }
}

/// Groups of the fewest warps: as many as fit the shared memory of a block; one where none does, so
/// that the launch tells what is missing.
uint32_t most_groups(size_t fields, const Device& device) {
  uint32_t groups = kMostGroups;
  const size_t most = most_shared_bytes(device);
  while (groups > 1 && BlockMemory<false>::bytes(groups, fields) > most) --groups;
  return groups;
}

/// The active bricks of a job on the device, and what is launched.
class ActiveBricks {
 public:
  explicit ActiveBricks(DeviceJob& job) : job_(job), device_(job.context().device) {
    const bool is_only = job.is_plain() && job.fields() == 1;
    kernel_ = is_only ? reinterpret_cast<const void*>(bricks_kernel<true>)
                      : reinterpret_cast<const void*>(bricks_kernel<false>);
    const auto fields = static_cast<size_t>(job.fields());
    const uint32_t groups = most_groups(fields, device_);
    threads_ = groups * kGroupThreads;
    bytes_ = BlockMemory<false>::bytes(groups, fields);
    blocks_ = cooperative_blocks(kernel_, threads_, bytes_, job.most_blocks(), device_);
    const FieldView& last = job.view(job.fields() - 1);
    count_ = last.first_word + active_words(last.layout);
    words_ = Buffer<uint32_t>(device_, 3 * size_t{count_});
    words_.set_zero();
  }

  /// What the first step computes: found, or given by the job.
  void begin() {
    job_.stop_before_steps(first_set(job_, Listed::kBricks, active().words));
    std::vector<uint32_t> words = download();
    for (int32_t f = 0; f < job_.fields(); ++f) {
      for (const uint32_t brick : job_.active(f).items) {
        const FieldView& view = job_.view(f);
        const Vec3i at = view.layout.brick_at(brick);
        words[view.first_word + active_word(view.layout, at)] |= 1U << at.x % kWordBits;
      }
    }
    words_.upload(words, turn_ * size_t{count_});
  }

  void run(int64_t steps) {
    job_.begin(steps);
    BrickRun run{};
    run.views = job_.views();
    run.progress = job_.progress();
    run.fields = job_.fields();
    run.steps = static_cast<int32_t>(steps);
    run.active = active();
    run.turn = turn_;
    run.counts = job_.counts();
    run.rules = job_.rules();
    run.only = job_.view(0);
    void* arguments[] = {&run};
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(threads_), arguments,
                                                 bytes_, larch::cuda::stream_of(device_)));
    larch::cuda::check_launch("levelset bricks_kernel");
    job_.finish();
    turn_ = static_cast<uint32_t>((turn_ + steps) % 3);
  }

  /// Gives the job what the next step of its running fields computes.
  void finish() {
    for (int32_t f = 0; f < job_.fields(); ++f) job_.active(f).items.clear();
    const std::vector<uint32_t> words = download();
    for (int32_t f = 0; f < job_.fields(); ++f) {
      const FieldView& view = job_.view(f);
      const Stop stop = job_.progress(f).stop;
      if (stop != Stop::kNone && stop != Stop::kInterrupted) continue;
      for (uint32_t w = 0; w < active_words(view.layout); ++w) {
        const int64_t first = view.layout.brick_of(first_brick(view.layout, w));
        for (uint32_t word = words[view.first_word + w]; word != 0; word &= word - 1) {
          job_.active(f).items.push_back(static_cast<uint32_t>(first + std::countr_zero(word)));
        }
      }
    }
  }

 private:
  ActiveBits active() { return {words_.data(), count_}; }
  /// The bits of the next step.
  std::vector<uint32_t> download() {
    std::vector<uint32_t> words(count_);
    words_.download(words, turn_ * size_t{count_});
    return words;
  }

  DeviceJob& job_;
  const Device& device_;
  const void* kernel_ = nullptr;
  size_t bytes_ = 0;
  uint32_t threads_ = 0, blocks_ = 0;
  uint32_t count_ = 0;        ///< words of a set of bits
  Buffer<uint32_t> words_{};  ///< three sets of bits
  uint32_t turn_ = 0;         ///< ActiveBits::set of the next step
};

}  // namespace

void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  for_parts(job, kMostFields, [&](size_t first, size_t last) {
    DeviceJob part(job, first, last, Listed::kBricks, kMostSteps, context);
    if (part.is_running()) evolve_active<ActiveBricks>(part, steps);
  });
}

}  // namespace larch::levelset::cuda
