// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/core/async_copy.cuh"
#include "cuda/core/check.cuh"
#include "cuda/levelset/brick_step.cuh"
#include "cuda/levelset/device_job.cuh"

// Every brick in every step: one launch per step, and a small one that decides on the end.
namespace larch::levelset::cuda {
namespace {

/// Bricks along x that a block of threads takes one after the other.
constexpr int32_t kRun = 8;
/// Steps between two looks of the host at what has stopped.
constexpr int64_t kBetweenLooks = 64;

struct DenseSweep {
  FieldView view{};        ///< of the field that is swept
  const FieldView* views;  ///< of all
  const FieldProgress* progress;
  StepCount* counts;  ///< of this step, by field
  int32_t field;
};

/// A block of threads per run of bricks.
template <bool kPlain>
__global__ void __launch_bounds__(kBrickThreads, 8)
    sweep_kernel(const __grid_constant__ DenseSweep sweep) {
  __shared__ StagedBrick bricks[2];
  __shared__ int32_t rows[StagedBrick::kRows];
  __shared__ MovingVoxels moving;
  const FieldView& view = sweep.view;
  const FieldProgress& progress = sweep.progress[sweep.field];
  if (progress.stop != Stop::kNone) return;
  const uint32_t runs_per_row = (static_cast<uint32_t>(view.layout.count.x) + kRun - 1) / kRun;
  const uint32_t row = blockIdx.x / runs_per_row;
  const int32_t first = static_cast<int32_t>(blockIdx.x % runs_per_row) * kRun;
  const int32_t last = min(first + kRun, view.layout.count.x);
  const int32_t side = side_of(progress.iterations);
  const float* phi = view.phi[side];
  const BrickLane lane;
  find_rows(view.layout, rows);
  __syncthreads();
  const auto count_y = static_cast<uint32_t>(view.layout.count.y);
  Vec3i place{first, static_cast<int32_t>(row % count_y), static_cast<int32_t>(row / count_y)};
  BrickEntry entry = brick_entry(view.layout, place, sweep.field);
  lane.fetch(view, phi, entry, rows, bricks[0]);
  LaneCount own;
  for (int32_t x = first; x < last; ++x) {
    const int32_t turn = (x - first) & 1;
    const BrickEntry now = entry;
    float* out = view.phi[1 - side] + now.first_voxel();
    larch::cuda::wait_for_copies();
    __syncthreads();
    lane.look_at_rows(view.step.clamp, bricks[turn], moving);
    lane.copy_brick(view, now, bricks[turn], out);
    if (threadIdx.x == 0) moving.count = 0;
    __syncthreads();
    if (x + 1 < last) {
      ++place.x;
      entry = brick_entry(view.layout, place, sweep.field);
      lane.fetch(view, phi, entry, rows, bricks[1 - turn]);
    }
    lane.list_moving(view.layout.size, now, kPlain || view.group_count == 1, moving);
    __syncthreads();
    lane.step<kPlain>(view, sweep.views, now, moving, side, bricks[turn], out, own);
  }
  if (!__any_sync(kAllLanes, own.changed != 0)) return;
  const StepCount count = total_of(own);
  if (threadIdx.x % 32 == 0) add_to(sweep.counts + sweep.field, count);
}

/// One block of threads: one of them per group of fields.
__global__ void decide_kernel(const FieldView* views, FieldProgress* progress, StepCount* counts,
                              int32_t fields, StopRules rules) {
  for (auto f = static_cast<int32_t>(threadIdx.x); f < fields;
       f += static_cast<int32_t>(blockDim.x)) {
    const Vec3i& size = views[f].layout.size;
    const int64_t voxels = int64_t{size.x} * size.y * size.z;
    counts[f].active = static_cast<uint32_t>(min(voxels, int64_t{UINT32_MAX}));
    if (views[f].group_first == f) advance_group(progress, counts, views[f], rules);
  }
}

/// Launches `steps` steps. Those after the end of a field leave it as it is.
void sweep(DeviceJob& job, int64_t steps) {
  const cudaStream_t stream = larch::cuda::stream_of(job.context().device);
  const auto kernel = job.is_plain() ? sweep_kernel<true> : sweep_kernel<false>;
  job.begin(steps);
  for (int64_t s = 0; s < steps; ++s) {
    DenseSweep one{{}, job.views(), job.progress(), job.counts() + s * job.fields(), 0};
    for (one.field = 0; one.field < job.fields(); ++one.field) {
      one.view = job.view(one.field);
      const Vec3i& count = one.view.layout.count;
      const int64_t blocks = int64_t{(count.x + kRun - 1) / kRun} * count.y * count.z;
      kernel<<<static_cast<uint32_t>(blocks), kBrickThreads, 0, stream>>>(one);
      larch::cuda::check_launch("levelset sweep_kernel");
    }
    decide_kernel<<<1, 32, 0, stream>>>(job.views(), job.progress(), one.counts, job.fields(),
                                        job.rules());
    larch::cuda::check_launch("levelset decide_kernel");
  }
  job.finish();
}

}  // namespace

void evolve_dense(EvolveJob& job, int64_t steps, const Context& context) {
  constexpr size_t kMostFields = 1024;
  LARCH_CUDA_CHECK(cudaSetDevice(context.device.index));
  for_parts(job, kMostFields, [&](size_t first, size_t last) {
    DeviceJob part(job, first, last, Listed::kNothing, kBetweenLooks, context);
    if (!part.is_running()) return;
    part.stop_before_steps(first_set(part, Listed::kNothing));
    for (int64_t done = 0; done < steps && part.goes_on(); done += kBetweenLooks) {
      sweep(part, std::min(kBetweenLooks, steps - done));
    }
    for (int32_t f = 0; f < part.fields(); ++f) part.active(f) = {{}, true};
  });
}

}  // namespace larch::levelset::cuda
