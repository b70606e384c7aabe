// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "cuda/levelset/brick_step.cuh"
#include "cuda/levelset/device_job.cuh"

// One launch makes all steps: blocks of threads that stay, and meet once a step.
namespace larch::levelset::cuda {
namespace {

/// Groups of threads of a block: more of them for the same blocks to wait for.
constexpr int32_t kGroups = 4;
constexpr int32_t kThreads = kGroups * kGroupThreads;
/// Fields of one launch, unless a group has more.
constexpr size_t kMostFields = 64;

struct BrickRun {
  const FieldView* views;
  FieldProgress* progress;
  int32_t fields;
  int32_t steps;
  BrickEntry* lists[2];  ///< step s reads lists[s % 2] and appends to the other
  uint32_t* lengths;     ///< by step
  uint32_t epoch;        ///< stamp of what step 0 appends
  StepCount* counts;     ///< by step and field
  StopRules rules;
};

/// A lane's neighbour of a brick across a face or an edge, or the brick itself: offsets from 0 to 2
/// of x, y, z in two bits each, then WarpDone::faces that a change must have reached to concern it.
/// Lanes without one have a bit that no brick has.
__device__ inline uint32_t neighbour_of_lane(uint32_t lane) {
  const uint32_t x = lane % 3, y = lane / 3 % 3, z = lane / 9;
  uint32_t faces = 1;
  if (x != 1) faces |= x == 0 ? 2U : 4U;
  if (y != 1) faces |= y == 0 ? 8U : 16U;
  if (z != 1) faces |= z == 0 ? 32U : 64U;
  const bool is_corner = x != 1 && y != 1 && z != 1;
  if (is_corner || z > 2) faces = 0x80U;
  return x | y << 2 | z << 4 | faces << 6;
}

/// Lists what a changed brick concerns for the next step: its neighbours, and itself in the other
/// fields of its group. Called by one warp.
__device__ inline void activate(const FieldView* views, const BrickEntry& entry, uint32_t faces,
                                uint32_t neighbour, uint32_t epoch, BrickEntry* list,
                                uint32_t* length) {
  const uint32_t lane = threadIdx.x % 32;
  const FieldView& view = views[entry.field];
  const int32_t x = entry.x + static_cast<int32_t>(neighbour & 3) - 1;
  const int32_t y = entry.y + static_cast<int32_t>(neighbour >> 2 & 3) - 1;
  const int32_t z = entry.z + static_cast<int32_t>(neighbour >> 4 & 3) - 1;
  const Vec3i& count = view.layout.count;
  const uint32_t needed = neighbour >> 6;
  const bool is_there = (faces & needed) == needed && x >= 0 && y >= 0 && z >= 0 && x < count.x &&
                        y < count.y && z < count.z;
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
    bool is_new = false;
    if (is_there && (k == entry.field || needed == 1)) {
      is_new = atomicExch(views[k].stamps + view.layout.brick_of({x, y, z}), epoch) != epoch;
    }
    const uint32_t all = __ballot_sync(kAllLanes, is_new);
    if (all == 0) continue;
    uint32_t at = 0;
    if (lane == 0) at = atomicAdd(length, static_cast<uint32_t>(__popc(all)));
    at = __shfl_sync(kAllLanes, at, 0) + static_cast<uint32_t>(__popc(all & ((1U << lane) - 1)));
    if (is_new) {
      list[at] = {static_cast<uint16_t>(x), static_cast<uint16_t>(y), static_cast<uint16_t>(z),
                  static_cast<uint16_t>(k)};
    }
  }
}

/// What a group counted of one field and has not yet written; in shared memory, for one thread.
struct OpenCount {
  StepCount count{};
  int32_t field = -1;

  __device__ void add(const WarpDone& done, int32_t of, StepCount* counts) {
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
  BrickScratch* scratch;    ///< by group
  OpenCount* open;          ///< by group
  FieldView* views;         ///< by field, as the following
  FieldProgress* progress;  ///< the same in every block
  int32_t* side;            ///< of phi that step 0 reads

  __device__ BlockMemory(char* shared, int32_t fields)
      : scratch(reinterpret_cast<BrickScratch*>(shared)),
        open(reinterpret_cast<OpenCount*>(scratch + kGroups)),
        views(reinterpret_cast<FieldView*>(open + kGroups)),
        progress(reinterpret_cast<FieldProgress*>(views + fields)),
        side(reinterpret_cast<int32_t*>(progress + fields)) {}
  static size_t bytes(size_t fields) {
    return kGroups * (sizeof(BrickScratch) + sizeof(OpenCount)) +
           fields * (sizeof(FieldView) + sizeof(FieldProgress) + sizeof(int32_t));
  }
  __device__ void load(const BrickRun& run) const {
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run.fields; f += kThreads) {
      views[f] = run.views[f];
      progress[f] = run.progress[f];
      side[f] = side_of(run.progress[f].iterations);
    }
    if (threadIdx.x < kGroups) open[threadIdx.x] = {};
    __syncthreads();
  }
  /// Where phi is read in a step. Running fields make one iteration in each.
  __device__ int32_t side_in(int32_t step, int32_t field) const { return side[field] ^ (step & 1); }
};

/// A group of threads that takes one brick after the other.
template <bool kPlain>
class BrickGroup {
 public:
  __device__ BrickGroup(const BrickRun& run, const BlockMemory& memory, uint32_t group)
      : run_(run),
        memory_(memory),
        scratch_(memory.scratch[group]),
        open_(memory.open[group]),
        group_(group),
        own_(blockIdx.x + group * gridDim.x),
        thread_(threadIdx.x % kGroupThreads) {}

  /// Starts to read the first brick of a step.
  __device__ void begin(int32_t step) {
    length_ = __ldcg(run_.lengths + step);
    entry_ = read_entry(run_.lists[step & 1] + own_);
    if (own_ < length_) fetch(step);
  }

  /// All bricks of a step. `begin` was called for it.
  __device__ void make_step(int32_t step) {
    int32_t turn = 0;
    const uint32_t stride = kGroups * gridDim.x;
    for (uint32_t item = own_; item < length_; item += stride) {
      const BrickEntry now = entry_;
      const int16_t speeds[2] = {fetched_.speed[0], fetched_.speed[1]};
      const bool is_running = memory_.progress[now.field].stop == Stop::kNone;
      if (is_running) {
        thread_.share(fetched_, memory_.views[now.field].step.clamp, scratch_, turn & 1);
        if (threadIdx.x % kGroupThreads == 0) scratch_.entry[turn & 1] = now;
      }
      sync_group(group_);
      if (item + stride < length_) {
        entry_ = read_entry(run_.lists[step & 1] + item + stride);
        fetch(step);
      }
      if (!is_running) continue;  // it was listed before its field stopped
      if (turn > 0 && thread_.warp() == 0) close(step, turn - 1);
      const WarpDone done = thread_.template step<kPlain>(
          memory_.views, now, memory_.side_in(step, now.field), speeds, scratch_, turn & 1);
      if (thread_.lane() == 0) scratch_.done[turn & 1][thread_.warp()] = done;
      ++turn;
    }
    sync_group(group_);
    if (thread_.warp() != 0) return;
    if (turn > 0) close(step, turn - 1);
    if (thread_.lane() == 0) open_.write(counts(step));
  }

  __device__ StepCount* counts(int32_t step) const {
    return run_.counts + int64_t{step} * run_.fields;
  }

 private:
  __device__ static BrickEntry read_entry(const BrickEntry* from) {
    const unsigned long long word = __ldcg(reinterpret_cast<const unsigned long long*>(from));
    return {static_cast<uint16_t>(word), static_cast<uint16_t>(word >> 16),
            static_cast<uint16_t>(word >> 32), static_cast<uint16_t>(word >> 48)};
  }
  __device__ void fetch(int32_t step) {
    const FieldView& view = memory_.views[entry_.field];
    thread_.fetch(view, view.phi[memory_.side_in(step, entry_.field)], entry_, fetched_);
  }
  /// Counts a brick and lists what it concerns. Called by one warp.
  __device__ void close(int32_t step, int32_t turn) {
    const WarpDone done = sum_of(scratch_.done[turn & 1], thread_.lane());
    const BrickEntry entry = scratch_.entry[turn & 1];
    if (done.faces != 0) {
      activate(memory_.views, entry, done.faces, neighbour_of_lane(thread_.lane()),
               run_.epoch + static_cast<uint32_t>(step), run_.lists[1 - (step & 1)],
               run_.lengths + step + 1);
    }
    if (thread_.lane() == 0) open_.add(done, entry.field, counts(step));
  }

  const BrickRun& run_;
  const BlockMemory& memory_;
  BrickScratch& scratch_;
  OpenCount& open_;
  uint32_t group_, own_;
  BrickThread thread_;
  uint32_t length_ = 0;
  BrickEntry entry_{};
  Fetched fetched_{};
};

template <bool kPlain>
__global__ void __launch_bounds__(kThreads, 1) bricks_kernel(const __grid_constant__ BrickRun run) {
  extern __shared__ __align__(16) char shared[];
  const BlockMemory memory(shared, run.fields);
  memory.load(run);
  const auto grid = cooperative_groups::this_grid();
  BrickGroup<kPlain> group(run, memory, threadIdx.x / kGroupThreads);
  group.begin(0);
  for (int32_t step = 0; step < run.steps; ++step) {
    group.make_step(step);
    grid.sync();
    // The last threads decide; the others, whose groups more often have a brick, read it meanwhile.
    bool is_on = false;
    for (int32_t f = kThreads - 1 - static_cast<int32_t>(threadIdx.x); f < run.fields;
         f += kThreads) {
      if (memory.views[f].group_first == f) {
        is_on =
            advance_group(memory.progress, group.counts(step), memory.views[f], run.rules) || is_on;
      }
    }
    if (step + 1 < run.steps) group.begin(step + 1);
    if (__syncthreads_or(is_on) == 0) break;
  }
  if (blockIdx.x != 0) return;
  for (int32_t f = static_cast<int32_t>(threadIdx.x); f < run.fields; f += kThreads) {
    run.progress[f] = memory.progress[f];
  }
}

/// Lists of a job on the device, and what is launched.
class BrickLists {
 public:
  explicit BrickLists(DeviceJob& job) : job_(job), device_(job.context().device) {
    const void* kernel = job.is_plain() ? reinterpret_cast<const void*>(bricks_kernel<true>)
                                        : reinterpret_cast<const void*>(bricks_kernel<false>);
    kernel_ = kernel;
    bytes_ = BlockMemory::bytes(static_cast<size_t>(job.fields()));
    blocks_ = cooperative_blocks(kernel, kThreads, bytes_, job.most_blocks(), device_);
    size_t bricks = 0;
    for (int32_t f = 0; f < job.fields(); ++f) {
      bricks += static_cast<size_t>(job.view(f).layout.bricks());
    }
    const size_t capacity = std::max<size_t>(bricks, size_t{kGroups} * blocks_);
    for (Buffer<BrickEntry>& list : lists_) {
      list = Buffer<BrickEntry>(device_, capacity);
      list.set_zero();
    }
    lengths_ = Buffer<uint32_t>(device_, kMostSteps + 1);
    lengths_.set_zero();
  }

  /// What the first step computes: found, or given by the job.
  void begin() {
    const std::vector<uint32_t> found =
        first_set(job_, Listed::kBricks, {lists_[0].data(), lengths_.data()});
    job_.stop_before_steps(found);
    std::vector<BrickEntry> given;
    for (int32_t f = 0; f < job_.fields(); ++f) {
      const BrickLayout& layout = job_.view(f).layout;
      for (const uint32_t brick : job_.active(f).items) {
        const Vec3i at = layout.brick_at(brick);
        given.push_back({static_cast<uint16_t>(at.x), static_cast<uint16_t>(at.y),
                         static_cast<uint16_t>(at.z), static_cast<uint16_t>(f)});
      }
    }
    uint32_t length = 0;
    lengths_.download({&length, 1});
    lists_[0].upload(given, length);
    length_ = length + static_cast<uint32_t>(given.size());
  }

  void run(int64_t steps) {
    lengths_.set_zero();
    lengths_.upload({&length_, 1});
    job_.begin(steps);
    BrickRun run{};
    run.views = job_.views();
    run.progress = job_.progress();
    run.fields = job_.fields();
    run.steps = static_cast<int32_t>(steps);
    run.lists[0] = lists_[now_].data();
    run.lists[1] = lists_[1 - now_].data();
    run.lengths = lengths_.data();
    run.epoch = epoch_;
    run.counts = job_.counts();
    run.rules = job_.rules();
    void* arguments[] = {&run};
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(kThreads), arguments,
                                                 bytes_, larch::cuda::stream_of(device_)));
    larch::cuda::check_launch("levelset bricks_kernel");
    job_.finish();
    if (!job_.is_running()) {
      length_ = 0;
      return;
    }
    lengths_.download({&length_, 1}, static_cast<size_t>(steps));
    now_ = (now_ + static_cast<int32_t>(steps)) % 2;
    epoch_ += static_cast<uint32_t>(steps);
  }

  /// Gives the job what the next step of its running fields computes.
  void finish() {
    for (int32_t f = 0; f < job_.fields(); ++f) job_.active(f).items.clear();
    std::vector<BrickEntry> entries(length_);
    lists_[now_].download(entries);
    for (const BrickEntry& e : entries) {
      const int64_t brick = job_.view(e.field).layout.brick_of({e.x, e.y, e.z});
      job_.active(e.field).items.push_back(static_cast<uint32_t>(brick));
    }
    for (int32_t f = 0; f < job_.fields(); ++f) {
      std::sort(job_.active(f).items.begin(), job_.active(f).items.end());
    }
  }

 private:
  DeviceJob& job_;
  const Device& device_;
  const void* kernel_ = nullptr;
  size_t bytes_ = 0;
  uint32_t blocks_ = 0;
  Buffer<BrickEntry> lists_[2];
  Buffer<uint32_t> lengths_;
  int32_t now_ = 0;      ///< list of the next step
  uint32_t length_ = 0;  ///< of it
  uint32_t epoch_ = 2;   ///< stamp of what the next step appends; first_set's is 1
};

}  // namespace

void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  for_parts(job, kMostFields, [&](size_t first, size_t last) {
    DeviceJob part(job, first, last, Listed::kBricks, context);
    if (!part.is_running()) return;
    BrickLists lists(part);
    lists.begin();
    for (int64_t done = 0; done < steps && part.goes_on(); done += kMostSteps) {
      lists.run(std::min(kMostSteps, steps - done));
    }
    lists.finish();
    part.end();
  });
}

}  // namespace larch::levelset::cuda
