// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string>

#include "cuda/core/check.cuh"
#include "cuda/levelset/active_bricks.cuh"
#include "cuda/levelset/clamped_bits.cuh"
#include "cuda/levelset/device_job.cuh"

namespace larch::levelset::cuda {

DeviceJob::DeviceJob(EvolveJob& job, Listed listed, const Context& context)
    : job_(job), context_(context) {
  const BrickLayout& layout = job.fields[0].layout;
  if (job.fields.size() > kMaximumNumbered) {
    throw UsageError("levelset: " + std::to_string(job.fields.size()) +
                     " labels of one image, and kernels number " +
                     std::to_string(kMaximumNumbered) + "; use --device cpu");
  }
  if (std::max({layout.count.x, layout.count.y, layout.count.z}) > UINT16_MAX) {
    throw UsageError("levelset: an axis of more than 524280 voxels; use --device cpu");
  }
  for (LevelsetField& field : job.fields) host_views_.push_back(make_view(field, listed));
  const size_t all = job.fields.size();
  views_ = Buffer<FieldView>(context.device, std::span<const FieldView>(host_views_));
  progress_ = Buffer<Progress>(context.device, 1);
  inside_ = Buffer<int64_t>(context.device, all);
  counts_ = Buffer<StepCount>(context.device, all * static_cast<size_t>(kMaximumSteps));
}

FieldView DeviceJob::make_view(LevelsetField& field, Listed listed) {
  const Device& device = context_.device;
  FieldView view;
  for (int side = 0; side < 2; ++side) view.phi[side] = field.phi[side].data();
  view.speeds.speed = field.speed.data();
  for (int axis = 0; axis < 3; ++axis) {
    if (!field.advection[axis].empty()) view.speeds.advection[axis] = field.advection[axis].data();
  }
  view.layout = field.layout;
  view.step = field.step;
  view.first_word = static_cast<uint32_t>(host_views_.size()) * active_words(view.layout);
  if (listed == Listed::kVoxels) {
    const auto voxels = static_cast<size_t>(field.layout.stored_voxels());
    stamps_.emplace_back(device, voxels);
    stamps_.back().set_zero();
    view.stamps = stamps_.back().data();
    for (uint32_t*& list : view.lists) {
      lists_.emplace_back(device, voxels);
      list = lists_.back().data();
    }
    return view;
  }
  const auto bricks = static_cast<size_t>(field.layout.bricks());
  for (uint32_t*& bits : view.clamped) {
    bits_.emplace_back(device, bricks * kClampedWords);
    bits = bits_.back().data();
  }
  bits_.emplace_back(device, bricks * kVoxelWords);
  view.unequal = bits_.back().data();
  return view;
}

JobView DeviceJob::begin(int64_t steps) {
  progress_.upload({&job_.progress, 1});
  inside_.upload(job_.inside);
  memory::set_zero(context_.device, counts_.data(),
                   static_cast<size_t>(steps * fields()) * sizeof(StepCount));
  return {views(),
          progress_.data(),
          inside_.data(),
          counts_.data(),
          job_.stops,
          static_cast<int32_t>(steps),
          side_of(job_.progress.iterations)};
}

void DeviceJob::finish() {
  const Progress after = progress_.to_vector()[0];
  const int64_t done = after.iterations - job_.progress.iterations;
  std::vector<StepCount> counts(static_cast<size_t>(done * fields()));
  counts_.download(counts);
  for (size_t i = 0; i < counts.size(); ++i) {
    job_.history[i % job_.fields.size()].push_back(counts[i]);
  }
  job_.inside = inside_.to_vector();
  job_.progress = after;
}

size_t most_shared_bytes(const Device& device) {
  const int most = larch::cuda::most_shared_bytes(device);
  constexpr int kOwn = 1024;  // more than a kernel declares itself
  return static_cast<size_t>(std::max(most - kOwn, 0));
}

uint32_t cooperative_blocks(const void* kernel, uint32_t threads, size_t shared_bytes,
                            int32_t most_blocks, const Device& device) {
  int resident = 0;
  const int processors = larch::cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  const size_t most_shared = most_shared_bytes(device);
  if (shared_bytes > most_shared) {
    throw DeviceError(to_string(device) + ": so many labels of one image need " +
                      std::to_string(shared_bytes) + " bytes of shared memory, and there are " +
                      std::to_string(most_shared) + "; use --device cpu");
  }
  LARCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  LARCH_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, kernel, static_cast<int>(threads), shared_bytes));
  const bool has_launches = larch::cuda::attribute(cudaDevAttrCooperativeLaunch, device) != 0;
  if (!has_launches || resident == 0) {
    throw DeviceError(to_string(device) +
                      " cannot run level sets: all blocks of a launch must run at once; use "
                      "--device cpu");
  }
  const int64_t all = int64_t{resident} * processors;
  return static_cast<uint32_t>(most_blocks > 0 ? std::min<int64_t>(all, most_blocks) : all);
}

}  // namespace larch::levelset::cuda
