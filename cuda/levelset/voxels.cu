// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <cooperative_groups.h>

#include "cuda/core/check.cuh"
#include "cuda/levelset/voxel_step.cuh"

// The list of active voxels of Roberts et al. 2010, with the exact rule: a voxel is active where
// one of its stencil changed. All steps are one launch.
namespace larch::levelset::cuda {
namespace {

/// Lists the stencil of a voxel that changed for the next step, where it is not yet listed. All
/// threads of a block call it.
__device__ void list_stencil(const FieldView& view, uint32_t at, bool has_changed, uint32_t epoch,
                             uint32_t* list, uint32_t* length, uint32_t* sums) {
  uint32_t taken = 0;
  if (has_changed) {
    const VoxelPlace place(view.layout, at);
#pragma unroll
    for (int32_t i = 0; i < 19; ++i) {
      if ((place.inside & needed_inside(i)) != needed_inside(i)) continue;
      const VoxelOffset o = stencil_offset(i);
      uint32_t* stamp = view.stamps + place.at(o.x, o.y, o.z);
      if (__ldcg(stamp) != epoch && atomicExch(stamp, epoch) != epoch) taken |= 1U << i;
    }
  }
  uint32_t to = append_of_block(static_cast<uint32_t>(__popc(taken)), length, sums);
  if (taken == 0) return;
  const VoxelPlace place(view.layout, at);
#pragma unroll
  for (int32_t i = 0; i < 19; ++i) {
    const VoxelOffset o = stencil_offset(i);
    if ((taken >> i & 1) != 0) list[to++] = place.at(o.x, o.y, o.z);
  }
}

/// Lists a voxel that changed in the other fields of its group. All threads of a block call it.
__device__ void list_in_others(const VoxelBlock& block, int32_t field, int32_t step, uint32_t at,
                               bool has_changed, uint32_t epoch, uint32_t* sums) {
  const FieldView& view = block.views()[field];
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
    if (k == field) continue;
    uint32_t* stamp = block.views()[k].stamps + at;
    const bool is_new = has_changed && atomicExch(stamp, epoch) != epoch;
    const uint32_t to =
        append_of_block(static_cast<uint32_t>(is_new), block.length(k, step + 1), sums);
    if (is_new) block.list(k, step + 1)[to] = at;
  }
}

__global__ void __launch_bounds__(kVoxelThreads)
    voxels_kernel(const __grid_constant__ VoxelRun run) {
  extern __shared__ __align__(16) char shared[];
  __shared__ uint32_t sums[kVoxelThreads / 32 + 1];
  __shared__ StepCount sum;
  const VoxelBlock block(run, shared);
  const auto grid = cooperative_groups::this_grid();
  for (int32_t step = 0; step < run.steps; ++step) {
    const uint32_t epoch = run.epoch + static_cast<uint32_t>(step);
    for (int32_t f = 0; f < run.fields; ++f) {
      if (!block.is_running(f)) continue;
      const uint32_t length = __ldcg(block.length(f, step));
      const uint32_t* list = block.list(f, step);
      LaneCount own;
      for (uint32_t first = blockIdx.x * kVoxelThreads; first < length;
           first += gridDim.x * kVoxelThreads) {
        const uint32_t item = first + threadIdx.x;
        const uint32_t at = item < length ? __ldcg(list + item) : kNoVoxel;
        const bool has_changed = step_voxel(block.views(), f, block.side(f), at, own);
        list_stencil(block.views()[f], at, has_changed, epoch, block.list(f, step + 1),
                     block.length(f, step + 1), sums);
        list_in_others(block, f, step, at, has_changed, epoch, sums);
      }
      StepCount count = total_of(own);
      if (blockIdx.x == 0 && threadIdx.x == 0) count.active = length;
      add_block(block.counts(step) + f, count, sum);
    }
    grid.sync();
    if (!block.advance(step)) break;
  }
  block.finish();
}

/// What is launched, with its lists.
class VoxelLists {
 public:
  explicit VoxelLists(DeviceJob& job) : job_(job), device_(job.context().device) {
    has_buffers_ = job.config().duplicates == Duplicates::kBuffers;
    kernel_ = has_buffers_ ? voxel_buffers_kernel() : reinterpret_cast<const void*>(voxels_kernel);
    bytes_ = VoxelBlock::bytes(static_cast<size_t>(job.fields()));
    blocks_ = cooperative_blocks(kernel_, kVoxelThreads, bytes_, job.most_blocks(), device_);
    lengths_ = Buffer<uint32_t>(device_, (kMostSteps + 1) * fields());
    if (!has_buffers_) return;
    size_t most = 0;
    for (int32_t f = 0; f < job.fields(); ++f) {
      most = std::max(most, static_cast<size_t>(job.view(f).layout.stored_voxels()));
    }
    for (Buffer<uint32_t>& list : auxiliary_) list = Buffer<uint32_t>(device_, most);
    changed_ = Buffer<uint32_t>(device_, most * fields());
    changed_each_ = static_cast<int64_t>(most);
    between_ = Buffer<uint32_t>(device_, kMostSteps * fields());
  }

  void begin() {
    length_ = first_set(job_, Listed::kVoxels);
    job_.stop_before_steps(length_);
    for (int32_t f = 0; f < job_.fields(); ++f) {
      const std::vector<uint32_t>& items = job_.active(f).items;
      memory::copy(device_, job_.view(f).lists[0], Device::cpu(), items.data(),
                   items.size() * sizeof(uint32_t));
    }
  }

  void run(int64_t steps) {
    lengths_.set_zero();
    lengths_.upload(length_);
    if (has_buffers_) between_.set_zero();
    job_.begin(steps);
    VoxelRun run{};
    run.views = job_.views();
    run.progress = job_.progress();
    run.fields = job_.fields();
    run.steps = static_cast<int32_t>(steps);
    run.first_list = now_;
    run.lengths = lengths_.data();
    run.epoch = epoch_;
    run.counts = job_.counts();
    run.rules = job_.rules();
    for (size_t i = 0; i < auxiliary_.size(); ++i) run.auxiliary[i] = auxiliary_[i].data();
    run.changed = changed_.data();
    run.changed_each = changed_each_;
    run.between = between_.data();
    void* arguments[] = {&run};
    LARCH_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel_, dim3(blocks_), dim3(kVoxelThreads),
                                                 arguments, bytes_,
                                                 larch::cuda::stream_of(device_)));
    larch::cuda::check_launch("levelset voxels_kernel");
    job_.finish();
    lengths_.download(length_, static_cast<size_t>(steps) * fields());
    now_ = (now_ + static_cast<int32_t>(steps)) % 2;
    epoch_ += 2 * static_cast<uint32_t>(steps);
  }

  void finish() {
    for (int32_t f = 0; f < job_.fields(); ++f) {
      std::vector<uint32_t>& items = job_.active(f).items;
      if (job_.progress(f).stop != Stop::kNone) continue;
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
  bool has_buffers_ = false;
  const void* kernel_ = nullptr;
  size_t bytes_ = 0;
  uint32_t blocks_ = 0;
  Buffer<uint32_t> lengths_, changed_, between_;
  std::array<Buffer<uint32_t>, 8> auxiliary_{};
  int64_t changed_each_ = 0;
  int32_t now_ = 0;                 ///< lists of the next step
  std::vector<uint32_t> length_{};  ///< of them, by field
  uint32_t epoch_ = 2;              ///< stamp of what the next step appends; first_set's is 1
};

void check_sizes(const EvolveJob& job) {
  for (const LevelsetField* field : job.fields) {
    if (field->layout.stored_voxels() >= int64_t{kNoVoxel}) {
      throw UsageError("levelset.tracker voxel: an image of " +
                       std::to_string(field->layout.stored_voxels()) +
                       " voxels, and lists can have 4294967294; take levelset.tracker brick");
    }
  }
}

}  // namespace

void evolve_voxels(EvolveJob& job, int64_t steps, const Context& context) {
  constexpr size_t kMostFields = 64;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  check_sizes(job);
  for_parts(job, kMostFields, [&](size_t first, size_t last) {
    DeviceJob part(job, first, last, Listed::kVoxels, kMostSteps, context);
    if (part.is_running()) evolve_active<VoxelLists>(part, steps);
  });
}

}  // namespace larch::levelset::cuda
