// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "cuda/levelset/brick_stencil.cuh"
#include "cuda/levelset/device_job.cuh"

// Listings 1 and 2 of the supplement of Roberts et al. 2010: a buffer per neighbour and one for the
// voxel itself; what is in several of them is removed in seven passes, without atomic operations.
// Twice: the neighbours of neighbours hold the stencil, which has voxels across edges. All steps
// are one launch, with a thread for each listed voxel; lists hold BrickLayout::offset.
namespace larch::levelset::cuda {
namespace {

constexpr int32_t kVoxelThreads = 256;
__device__ inline BrickEntry entry_of(const BrickLayout& layout, uint32_t at) {
  return brick_entry(layout, layout.brick_at(at / kBrickVoxels), 0);
}

/// Computes a voxel and writes it; `at` is kNoVoxel for threads without one. Adds to `count`. Did
/// it change?
__device__ inline bool step_voxel(const FieldViews& views, int32_t field, int32_t side, uint32_t at,
                                  LaneCount& count) {
  if (at == kNoVoxel) return false;
  const FieldView& view = views[field];
  const int16_t speed = view.speeds.speed[at];
  const BrickEntry brick = entry_of(view.layout, at);
  const Stencil<float> p = stencil_of(view.layout, view.phi[side], brick, at % kBrickVoxels);
  const float after = next_value<false>(view, views, field, side, at, p, speed);
  view.phi[1 - side][at] = after;
  if (__float_as_uint(p.centre) == __float_as_uint(after)) return false;
  count.add(p.centre, after);
  return true;
}

/// Holds what a launch for voxels gets. Steps read and append to FieldView::lists in turn.
struct VoxelRun {
  JobView job;
  int32_t first_list;
  uint32_t* lengths;       ///< by step and field
  uint32_t epoch;          ///< stamp of what step 0 appends
  uint32_t* auxiliary[8];  ///< the seven buffers, and the list between rounds
  uint32_t* changed;       ///< by field, one after the other: what changed in the step, or kNoVoxel
  int64_t changed_each;    ///< voxels of a field in `changed`
  uint32_t* between;       ///< length of auxiliary[7], by step and field
};

/// Blocks of threads that stay for all steps and know how far the job is.
class VoxelBlock {
 public:
  __device__ VoxelBlock(const VoxelRun& run, char* shared)
      : run_(run),
        progress_(*reinterpret_cast<Progress*>(shared)),
        inside_(reinterpret_cast<int64_t*>(&progress_ + 1)),
        views_(reinterpret_cast<FieldView*>(inside_ + fields())) {
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < fields(); f += kVoxelThreads) {
      views_[f] = run.job.views[f];
      inside_[f] = run.job.inside[f];
    }
    if (threadIdx.x == 0) progress_ = *run.job.progress;
    __syncthreads();
  }
  static size_t bytes(size_t fields) {
    return sizeof(Progress) + fields * (sizeof(int64_t) + sizeof(FieldView));
  }

  __device__ int32_t fields() const { return run_.job.views.count; }
  __device__ FieldViews views() const { return {views_, fields()}; }
  __device__ uint32_t* list(int32_t field, int32_t step) const {
    return views_[field].lists[(run_.first_list + step) & 1];
  }
  __device__ uint32_t* length(int32_t field, int32_t step) const {
    return run_.lengths + int64_t{step} * fields() + field;
  }
  __device__ StepCount* counts(int32_t step) const {
    return run_.job.counts + int64_t{step} * fields();
  }
  /// Ends a step, after all blocks have met. Does the job go on?
  __device__ bool advance(int32_t step) const {
    if (threadIdx.x == 0) {
      StepSum sum;
      add_fields(sum, counts(step), inside_, fields());
      progress_ = advanced(progress_, sum, run_.job.rules);
    }
    return __syncthreads_or(threadIdx.x == 0 && progress_.stop == Stop::kNone) != 0;
  }
  __device__ void finish() const {
    if (blockIdx.x != 0) return;
    for (int32_t f = static_cast<int32_t>(threadIdx.x); f < fields(); f += kVoxelThreads) {
      run_.job.inside[f] = inside_[f];
    }
    if (threadIdx.x == 0) *run_.job.progress = progress_;
  }

 private:
  const VoxelRun& run_;
  Progress& progress_;
  int64_t* inside_;
  FieldView* views_;
};

constexpr int32_t kBuffers = 7;

/// One round: what `from` holds (kNoVoxel: nothing) and its six neighbours, each once, appended to
/// `to`. All threads of all blocks call it.
class BufferRound {
 public:
  __device__ BufferRound(const VoxelRun& run, const FieldView& view, uint32_t tag)
      : run_(run), view_(view), tag_(tag) {}

  __device__ void run(const cooperative_groups::grid_group& grid, const uint32_t* from,
                      uint32_t count, uint32_t* to, uint32_t* length) const {
    generate(from, count);
    grid.sync();
    for (int32_t e = 0; e < kBuffers; ++e) {
      remove_duplicates(run_.auxiliary[e], count, e);
      grid.sync();
    }
    for (int32_t e = 0; e < kBuffers; ++e) compact(run_.auxiliary[e], count, to, length);
  }

  /// Appends what has no tag yet; nothing may be in `from` twice.
  __device__ void add_untagged(const uint32_t* from, uint32_t count, uint32_t* to,
                               uint32_t* length) const {
    for_tiles(count, [&](uint32_t item) {
      const uint32_t at = item < count ? __ldcg(from + item) : kNoVoxel;
      const bool is_new = at != kNoVoxel && __ldcg(view_.stamps + at) != tag_;
      if (is_new) view_.stamps[at] = tag_;
      append(is_new, at, to, length);
    });
  }

 private:
  template <class F>
  __device__ static void for_tiles(uint32_t count, const F& run) {
    for (uint32_t first = blockIdx.x * kVoxelThreads; first < count;
         first += gridDim.x * kVoxelThreads) {
      run(first + threadIdx.x);
    }
  }
  /// Called by whole warps.
  __device__ static void append(bool wanted, uint32_t at, uint32_t* to, uint32_t* length) {
    const uint32_t lane = threadIdx.x % 32, all = __ballot_sync(kAllLanes, wanted);
    if (all == 0) return;
    const auto upto = static_cast<uint32_t>(__popc(all & ((2U << lane) - 1)));
    const uint32_t first = take_places(length, upto, lane);
    if (wanted) to[first + upto - 1] = at;
  }
  __device__ void generate(const uint32_t* from, uint32_t count) const {
    for_tiles(count, [&](uint32_t item) {
      if (item >= count) return;
      const uint32_t at = __ldcg(from + item);
      if (at == kNoVoxel) {
        for (int32_t e = 0; e < kBuffers; ++e) run_.auxiliary[e][item] = kNoVoxel;
        return;
      }
      const auto to = steps_in_image(view_.layout, entry_of(view_.layout, at),
                                     place_in_brick(at % kBrickVoxels));
      const int64_t steps[kBuffers] = {0, to.xm, to.xp, to.ym, to.yp, to.zm, to.zp};
#pragma unroll
      for (int32_t e = 0; e < kBuffers; ++e) {
        const bool is_there = e == 0 || steps[e] != 0;
        run_.auxiliary[e][item] = is_there ? static_cast<uint32_t>(at + steps[e]) : kNoVoxel;
      }
    });
  }
  __device__ void remove_duplicates(uint32_t* buffer, uint32_t count, int32_t e) const {
    for_tiles(count, [&](uint32_t item) {
      if (item >= count) return;
      const uint32_t at = buffer[item];
      if (at == kNoVoxel) return;
      uint32_t* tag = view_.stamps + at;
      if (e > 0 && __ldcg(tag) == tag_) {
        buffer[item] = kNoVoxel;
      } else {
        *tag = tag_;
      }
    });
  }
  __device__ void compact(const uint32_t* buffer, uint32_t count, uint32_t* to,
                          uint32_t* length) const {
    for_tiles(count, [&](uint32_t item) {
      const uint32_t at = item < count ? buffer[item] : kNoVoxel;
      append(at != kNoVoxel, at, to, length);
    });
  }

  const VoxelRun& run_;
  const FieldView& view_;
  uint32_t tag_;
};

/// The lists of a field for the next step, from what changed.
__device__ void list_field(const VoxelRun& run, const VoxelBlock& block, int32_t field,
                           int32_t step) {
  const auto grid = cooperative_groups::this_grid();
  const FieldView& view = block.views()[field];
  const uint32_t tag = run.epoch + 2 * static_cast<uint32_t>(step);
  uint32_t* between = run.auxiliary[kBuffers];
  uint32_t* between_length = run.between + int64_t{step} * block.fields() + field;
  const BufferRound first(run, view, tag);
  first.run(grid, run.changed + field * run.changed_each, __ldcg(block.length(field, step)),
            between, between_length);
  grid.sync();
  const BufferRound second(run, view, tag + 1);
  uint32_t* list = block.list(field, step + 1);
  uint32_t* length = block.length(field, step + 1);
  second.run(grid, between, __ldcg(between_length), list, length);
  for (int32_t k = 0; k < block.fields(); ++k) {
    if (k == field) continue;
    grid.sync();
    second.add_untagged(run.changed + k * run.changed_each, __ldcg(block.length(k, step)), list,
                        length);
  }
  grid.sync();
}

__global__ void __launch_bounds__(kVoxelThreads)
    buffers_kernel(const __grid_constant__ VoxelRun run) {
  extern __shared__ __align__(16) char shared[];
  __shared__ BlockCount sum;
  if (threadIdx.x == 0) sum = {};
  const VoxelBlock block(run, shared);
  const auto grid = cooperative_groups::this_grid();
  for (int32_t step = 0; step < run.job.steps; ++step) {
    for (int32_t f = 0; f < block.fields(); ++f) {
      const uint32_t length = __ldcg(block.length(f, step));
      LaneCount own;
      for (uint32_t first = blockIdx.x * kVoxelThreads; first < length;
           first += gridDim.x * kVoxelThreads) {
        const uint32_t item = first + threadIdx.x;
        const uint32_t at = item < length ? __ldcg(block.list(f, step) + item) : kNoVoxel;
        const bool has_changed = step_voxel(block.views(), f, run.job.side_in(step), at, own);
        if (item < length) {
          run.changed[f * run.changed_each + item] = has_changed ? at : kNoVoxel;
        }
      }
      if (blockIdx.x == 0 && threadIdx.x == 0) sum.add_active(length);
      sum.add(total_of(own), threadIdx.x % 32);
      __syncthreads();
      if (threadIdx.x < 32) sum.move_to(block.counts(step)[f], threadIdx.x);
      __syncthreads();
    }
    grid.sync();
    for (int32_t f = 0; f < block.fields(); ++f) list_field(run, block, f, step);
    if (!block.advance(step)) break;
  }
  block.finish();
}

/// Holds what is launched, with its lists.
class VoxelLists {
 public:
  explicit VoxelLists(DeviceJob& job) : job_(job), device_(job.context().device) {
    bytes_ = VoxelBlock::bytes(static_cast<size_t>(job.fields()));
    blocks_ = cooperative_blocks(kernel_, kVoxelThreads, bytes_, job.job().most_blocks, device_);
    lengths_ = Buffer<uint32_t>(device_, (kMaximumSteps + 1) * fields());
    const auto voxels = static_cast<size_t>(job.view(0).layout.stored_voxels());
    for (Buffer<uint32_t>& list : auxiliary_) list = Buffer<uint32_t>(device_, voxels);
    changed_ = Buffer<uint32_t>(device_, voxels * fields());
    between_ = Buffer<uint32_t>(device_, kMaximumSteps * fields());
  }

  void begin() {
    length_ = first_set(job_, Listed::kVoxels);
    for (int32_t f = 0; f < job_.fields(); ++f) {
      const std::vector<uint32_t>& items = job_.active(f);
      memory::copy(device_, job_.view(f).lists[0], Device::cpu(), items.data(),
                   items.size() * sizeof(uint32_t));
    }
  }

  void run(int64_t steps) {
    lengths_.set_zero();
    lengths_.upload(length_);
    between_.set_zero();
    VoxelRun run{};
    run.job = job_.begin(steps);
    run.first_list = now_;
    run.lengths = lengths_.data();
    run.epoch = epoch_;
    for (size_t i = 0; i < auxiliary_.size(); ++i) run.auxiliary[i] = auxiliary_[i].data();
    run.changed = changed_.data();
    run.changed_each = job_.view(0).layout.stored_voxels();
    run.between = between_.data();
    void* arguments[] = {&run};
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(kVoxelThreads),
                                                 arguments, bytes_,
                                                 larch::cuda::stream_of(device_)));
    larch::cuda::check_launch("levelset buffers_kernel");
    job_.finish();
    lengths_.download(length_, static_cast<size_t>(steps) * fields());
    now_ = (now_ + static_cast<int32_t>(steps)) % 2;
    epoch_ += 2 * static_cast<uint32_t>(steps);
  }

  void finish() {
    for (int32_t f = 0; f < job_.fields(); ++f) {
      std::vector<uint32_t>& items = job_.active(f);
      items.resize(length_[static_cast<size_t>(f)]);
      memory::copy(Device::cpu(), items.data(), device_, job_.view(f).lists[now_],
                   items.size() * sizeof(uint32_t));
      std::sort(items.begin(), items.end());
    }
  }

 private:
  size_t fields() const { return static_cast<size_t>(job_.fields()); }

  DeviceJob& job_;
  const Device& device_;
  const void* kernel_ = reinterpret_cast<const void*>(buffers_kernel);
  size_t bytes_ = 0;
  uint32_t blocks_ = 0;
  Buffer<uint32_t> lengths_, changed_, between_;
  std::array<Buffer<uint32_t>, 8> auxiliary_{};
  int32_t now_ = 0;                 ///< lists of the next step
  std::vector<uint32_t> length_{};  ///< of them, by field
  uint32_t epoch_ = 2;              ///< stamp of what the next step appends; first_set's is 1
};

}  // namespace

void evolve_buffers(EvolveJob& job, int64_t steps, const Context& context) {
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  check_voxels_fit(job.fields[0].layout);
  DeviceJob on_device(job, Listed::kVoxels, context);
  evolve_active<VoxelLists>(on_device, steps);
}

}  // namespace larch::levelset::cuda
