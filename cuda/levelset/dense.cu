// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  const FieldView* views;
  const FieldProgress* progress;
  StepCount* counts;  ///< of this step, by field
};

/// A block of threads per run of bricks (grid x) and field (grid y).
template <bool kPlain>
__global__ void __launch_bounds__(kGroupThreads, 4)
    sweep_kernel(DenseSweep sweep, int32_t runs_per_row) {
  __shared__ BrickScratch scratch;
  __shared__ FieldView view;
  const auto field = static_cast<int32_t>(blockIdx.y);
  const FieldProgress& progress = sweep.progress[field];
  if (progress.stop != Stop::kNone) return;
  if (threadIdx.x == 0) view = sweep.views[field];
  __syncthreads();
  const Vec3i count = view.layout.count;
  const auto row = static_cast<int32_t>(blockIdx.x) / runs_per_row;
  if (row >= count.y * count.z) return;
  const int32_t first = static_cast<int32_t>(blockIdx.x) % runs_per_row * kRun;
  const int32_t last = min(first + kRun, count.x);
  if (first >= last) return;
  const int32_t side = side_of(progress.iterations);
  const float* phi = view.phi[side];
  const BrickThread thread(threadIdx.x);
  BrickEntry entry{static_cast<uint16_t>(first), static_cast<uint16_t>(row % count.y),
                   static_cast<uint16_t>(row / count.y), static_cast<uint16_t>(field)};
  Fetched fetched;
  thread.fetch(view, phi, entry, fetched);
  StepCount own;
  for (int32_t x = first; x < last; ++x) {
    const int32_t turn = (x - first) & 1;
    const int16_t speeds[2] = {fetched.speed[0], fetched.speed[1]};
    thread.share(fetched, view.step.clamp, scratch, turn);
    __syncthreads();
    const BrickEntry now = entry;
    if (x + 1 < last) {
      entry.x = static_cast<uint16_t>(x + 1);
      thread.fetch(view, phi, entry, fetched);
    }
    const StepCount part = thread.step<kPlain>(sweep.views, now, side, speeds, scratch, turn).count;
    add(own, part);
  }
  if (thread.lane() != 0) return;
  add_to(sweep.counts + field, own);
}

/// One block of threads: one of them per group of fields.
__global__ void decide_kernel(const FieldView* views, FieldProgress* progress, StepCount* counts,
                              int32_t fields, StopRules rules) {
  for (auto f = static_cast<int32_t>(threadIdx.x); f < fields;
       f += static_cast<int32_t>(blockDim.x)) {
    const Vec3i& size = views[f].layout.size;
    counts[f].active = static_cast<uint32_t>(int64_t{size.x} * size.y * size.z);
    if (views[f].group_first == f) advance_group(progress, counts, views[f], rules);
  }
}

/// Launches `steps` steps. Those after the end of a field leave it as it is.
void sweep(DeviceJob& job, int64_t steps) {
  const cudaStream_t stream = larch::cuda::stream_of(job.context().device);
  int32_t most_runs = 0, runs_per_row = 0;
  for (int32_t f = 0; f < job.fields(); ++f) {
    runs_per_row = std::max(runs_per_row, (job.view(f).layout.count.x + kRun - 1) / kRun);
  }
  for (int32_t f = 0; f < job.fields(); ++f) {
    const Vec3i& count = job.view(f).layout.count;
    most_runs = std::max(most_runs, count.y * count.z * runs_per_row);
  }
  const dim3 blocks(static_cast<uint32_t>(most_runs), static_cast<uint32_t>(job.fields()));
  job.begin(steps);
  for (int64_t s = 0; s < steps; ++s) {
    const DenseSweep one{job.views(), job.progress(), job.counts() + s * job.fields()};
    const auto kernel = job.is_plain() ? sweep_kernel<true> : sweep_kernel<false>;
    kernel<<<blocks, kGroupThreads, 0, stream>>>(one, runs_per_row);
    larch::cuda::check_launch("levelset sweep_kernel");
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
    DeviceJob part(job, first, last, Listed::kNothing, context);
    if (!part.is_running()) return;
    part.stop_before_steps(first_set(part, Listed::kNothing, {}));
    for (int64_t done = 0; done < steps && part.goes_on(); done += kBetweenLooks) {
      sweep(part, std::min(kBetweenLooks, steps - done));
    }
    for (int32_t f = 0; f < part.fields(); ++f) part.active(f) = {{}, true};
  });
}

}  // namespace larch::levelset::cuda
