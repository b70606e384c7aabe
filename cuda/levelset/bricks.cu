// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "cuda/levelset/active_bricks.cuh"
#include "cuda/levelset/device_job.cuh"

// One launch makes all steps: blocks of threads that stay, and meet once a step.
namespace larch::levelset::cuda {
namespace {

constexpr int32_t kThreads = BrickDeal::kThreads;
constexpr uint32_t kTeams = kThreads / kTeamThreads;
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

/// What a team counted of one field and has not yet written; in shared memory, for one thread.
struct OpenCount {
  StepCount count{};
  int32_t field = -1;

  __device__ void add(const BrickDone& done, int32_t of, StepCount* counts) {
    if (of != field) write(counts);
    field = of;
    levelset::cuda::add(count, done.count);
    ++count.active;
  }
  __device__ void write(StepCount* counts) {
    if (field >= 0) add_to(counts + field, count);
    count = {};
    field = -1;
  }
};

/// Shared memory of a block of threads.
struct BlockMemory {
  BrickDeal::Memory* deal;
  BrickScratch* scratch;    ///< by team
  OpenCount* open;          ///< by team
  FieldView* views;         ///< by field, as the following
  FieldProgress* progress;  ///< the same in every block
  int32_t* side;            ///< of phi that step 0 reads

  __device__ BlockMemory(char* shared, int32_t fields)
      : deal(reinterpret_cast<BrickDeal::Memory*>(shared)),
        scratch(reinterpret_cast<BrickScratch*>(deal + 1)),
        open(reinterpret_cast<OpenCount*>(scratch + kTeams)),
        views(reinterpret_cast<FieldView*>(open + kTeams)),
        progress(reinterpret_cast<FieldProgress*>(views + fields)),
        side(reinterpret_cast<int32_t*>(progress + fields)) {}
  static size_t bytes(size_t fields) {
    // Each part begins where the one before ends.
    static_assert(sizeof(BrickDeal::Memory) % alignof(BrickScratch) == 0 &&
                  sizeof(BrickScratch) % alignof(OpenCount) == 0 &&
                  sizeof(OpenCount) % alignof(FieldView) == 0 &&
                  sizeof(FieldView) % alignof(FieldProgress) == 0 &&
                  sizeof(FieldProgress) % alignof(int32_t) == 0 && alignof(BrickScratch) <= 16);
    return sizeof(BrickDeal::Memory) + kTeams * (sizeof(BrickScratch) + sizeof(OpenCount)) +
           fields * (sizeof(FieldView) + sizeof(FieldProgress) + sizeof(int32_t));
  }
  __device__ void load(const BrickRun& run) const {
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run.fields; f += kThreads) {
      views[f] = run.views[f];
      progress[f] = run.progress[f];
      side[f] = side_of(run.progress[f].iterations);
    }
    if (threadIdx.x < kTeams) open[threadIdx.x] = {};
    __syncthreads();
  }
  /// Where phi is read in a step. Running fields make one iteration in each.
  __device__ int32_t side_in(int32_t step, int32_t field) const { return side[field] ^ (step & 1); }
};

/// A block of threads, in teams that take one brick after the other. kOnly: BrickRun::only is the
/// field.
template <bool kOnly>
class BrickBlock {
 public:
  __device__ BrickBlock(const BrickRun& run, const BlockMemory& memory)
      : run_(run),
        memory_(memory),
        deal_(*memory.deal, memory.views, run.fields, run.active.count),
        thread_(threadIdx.x % kTeamThreads),
        team_(in_register(threadIdx.x / kTeamThreads)),
        turn_(run.turn) {
    thread_.make_offsets(view_of(0).layout, scratch());
  }

  /// Before a step: ends the one before, and deals the active bricks. False where no field goes on,
  /// or all steps are done.
  __device__ bool begin(int32_t step) {
    const uint32_t* active = run_.active.set(turn_);
    deal_.begin(active, run_.active.count);
    // A team often has the same brick as in the last step, which is read while that is found out.
    if (has_brick_) fetch(step);
    const bool is_on = step == 0 || end_step(step - 1);
    if (!deal_.count(active, run_.active.count, is_on) || step == run_.steps) return false;
    deal_.deal(active, run_.active.count, 0);
    clear(run_.active.set(turn_ + 2));
    return true;
  }

  /// All bricks of a step. `begin` was called for it.
  __device__ void make_step(int32_t step) {
    // Where there are few, two teams take a brick, each one half of it.
    const bool is_few = deal_.all() <= kTeams / 2 * gridDim.x;
    for (uint32_t first = 0;; first += BrickDeal::kMost) {
      take_dealt(step, first, is_few);
      if (!deal_.has(first + BrickDeal::kMost)) break;
      __syncthreads();
      const uint32_t* active = run_.active.set(turn_);
      deal_.begin(active, run_.active.count);
      deal_.count(active, run_.active.count, true);
      deal_.deal(active, run_.active.count, first + BrickDeal::kMost);
    }
    turn_ = turn_ == 2 ? 0 : turn_ + 1;
  }

 private:
  /// Each warp clears 32 words side by side, and first one of every block, so that none has more to
  /// do than the others.
  __device__ void clear(uint32_t* words) const {
    const uint32_t first = (blockIdx.x + threadIdx.x / 32 * gridDim.x) * 32 + threadIdx.x % 32;
    for (uint32_t w = first; w < run_.active.count; w += kThreads * gridDim.x) words[w] = 0;
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

  /// Decides which fields go on after a step: for this thread, does one? The last threads decide,
  /// so that they are not those of the teams that have a brick more often.
  __device__ bool end_step(int32_t step) const {
    bool is_on = false;
    for (int32_t f = kThreads - 1 - static_cast<int32_t>(threadIdx.x); f < run_.fields;
         f += kThreads) {
      if (memory_.views[f].group_first == f) {
        is_on =
            advance_group(memory_.progress, counts(step), memory_.views[f], run_.rules) || is_on;
      }
    }
    return is_on;
  }

  __device__ BrickScratch& scratch() const { return memory_.scratch[team_]; }

  /// A team's part of the bricks that were dealt from the block's `first` one on. While one is
  /// computed the next is read, and one warp counts what was done to the last and sets what it
  /// concerns. `is_few`: each pair of teams has one at most.
  __device__ void take_dealt(int32_t step, uint32_t first, bool is_few) {
    const uint32_t end = first + BrickDeal::kMost;
    const uint32_t halves = is_few ? 1U << team_ % 2 : kBothHalves;
    const bool is_closer = thread_.warp() == team_;  // of another scheduler in each team
    BrickEntry last;
    uint32_t next = first + (is_few ? team_ / 2 : team_);
    int32_t taken = 0;
    for (bool is_brick = false;; is_brick = true) {
      const BrickEntry now = entry_;
      const int32_t speeds[2] = {fetched_.speed[0], fetched_.speed[1]};
      const bool is_on = is_brick && is_running(now.field());  // or its field has stopped
      if (is_on) thread_.share(fetched_, view_of(now.field()).step.clamp, scratch(), taken & 1);
      if (is_brick) sync_team(team_);
      const bool is_last = next >= end || !deal_.has(next);
      if (!is_last) find(step, deal_.brick(next - first));
      next += kTeams;
      if (is_on) {
        if (taken > 0 && is_closer) close(step, last, done_of(team_, taken - 1));
        const HalvesDone done = thread_.template step<kOnly>(
            view_of(now.field()), memory_.views, now, halves, memory_.side_in(step, now.field()),
            speeds, scratch(), taken & 1);
        if (thread_.lane() == 0) scratch().done[taken & 1][thread_.warp()] = done;
        last = now;
        ++taken;
      }
      if (is_last) break;
    }
    if (is_few) {
      sync_pair<kTeams>(team_ / 2);
    } else {
      sync_team(team_);
    }
    if (!is_closer || taken == 0 || (halves & 1) == 0) return;
    BrickDone done = done_of(team_, taken - 1);
    if (is_few) add(done, done_of(team_ + 1, taken - 1));
    close(step, last, done);
    if (thread_.lane() == 0) memory_.open[team_].write(counts(step));
  }

  /// What a team did to the brick that it took so many others before.
  __device__ BrickDone done_of(uint32_t team, int32_t taken) const {
    return sum_of(memory_.scratch[team].done[taken & 1], thread_.lane());
  }

  /// Starts to read a brick, unless it is the one that was read ahead.
  __device__ void find(int32_t step, const BrickEntry& brick) {
    if (has_brick_ && brick.number == entry_.number && brick.z_field == entry_.z_field) return;
    if (!kOnly && brick.field() != entry_.field()) {
      thread_.make_offsets(view_of(brick.field()).layout, scratch());
    }
    entry_ = brick;
    has_brick_ = true;
    fetch(step);
  }
  __device__ void fetch(int32_t step) {
    const FieldView& view = view_of(entry_.field());
    thread_.fetch(view, view.phi[memory_.side_in(step, entry_.field())], entry_, scratch(),
                  fetched_);
  }

  /// Counts a brick and sets what it concerns. Called by one warp.
  __device__ void close(int32_t step, const BrickEntry& entry, const BrickDone& done) {
    if (thread_.lane() == 0) memory_.open[team_].add(done, entry.field(), counts(step));
    if (done.faces != 0) {
      activate(view_of(entry.field()), memory_.views, entry, done.faces, thread_.lane(),
               run_.active.set(turn_ + 1));
    }
  }

  const BrickRun& run_;
  const BlockMemory& memory_;
  BrickDeal deal_;
  const BrickThread thread_;
  const uint32_t team_;
  uint32_t turn_;           ///< ActiveBits::set of this step
  bool has_brick_ = false;  ///< the following are of a brick that was read last
  BrickEntry entry_{};
  Fetched fetched_{};
};

template <bool kOnly>
__global__ void __launch_bounds__(kThreads, 1) bricks_kernel(const __grid_constant__ BrickRun run) {
  extern __shared__ __align__(16) char shared[];
  const BlockMemory memory(shared, run.fields);
  memory.load(run);
  const auto grid = cooperative_groups::this_grid();
  BrickBlock<kOnly> block(run, memory);
  for (int32_t step = 0; block.begin(step); ++step) {
    block.make_step(step);
    grid.sync();
  }
  if (blockIdx.x != 0) return;
  for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run.fields; f += kThreads) {
    run.progress[f] = memory.progress[f];
  }
}

/// The active bricks of a job on the device, and what is launched.
class ActiveBricks {
 public:
  explicit ActiveBricks(DeviceJob& job) : job_(job), device_(job.context().device) {
    const bool is_only = job.is_plain() && job.fields() == 1;
    kernel_ = is_only ? reinterpret_cast<const void*>(bricks_kernel<true>)
                      : reinterpret_cast<const void*>(bricks_kernel<false>);
    bytes_ = BlockMemory::bytes(static_cast<size_t>(job.fields()));
    blocks_ = cooperative_blocks(kernel_, kThreads, bytes_, job.most_blocks(), device_);
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
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(kThreads), arguments,
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
  uint32_t blocks_ = 0;
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
