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

DeviceJob::DeviceJob(EvolveJob& job, size_t first, size_t last, Listed listed,
                     const Context& context)
    : job_(job), first_(first), last_(last), context_(context) {
  if (last - first > kMostNumbered) {
    throw UsageError("levelset: " + std::to_string(last - first) +
                     " labels of one image, and kernels number " + std::to_string(kMostNumbered) +
                     "; use --device cpu");
  }
  make_views(listed);
  make_groups();
  const auto all = static_cast<size_t>(fields());
  views_ = Buffer<FieldView>(context.device, std::span<const FieldView>(host_views_));
  progress_ = Buffer<FieldProgress>(context.device, all);
  counts_ = Buffer<StepCount>(context.device, all * static_cast<size_t>(kMostSteps));
}

void DeviceJob::make_views(Listed listed) {
  const Device& device = context_.device;
  uint32_t words = 0;
  for (size_t f = first_; f < last_; ++f) {
    LevelsetField& field = *job_.fields[f];
    FieldView view;
    const Vec3i& count = field.layout.count;
    if (std::max({count.x, count.y, count.z}) > UINT16_MAX) {
      throw UsageError("levelset: an axis of more than 524280 voxels; use --device cpu");
    }
    for (int side = 0; side < 2; ++side) view.phi[side] = field.phi[side].data();
    view.speeds.speed = field.speed.data();
    for (int axis = 0; axis < 3; ++axis) {
      if (!field.advection[axis].empty())
        view.speeds.advection[axis] = field.advection[axis].data();
    }
    view.layout = field.layout;
    view.step = field.step;
    if (listed == Listed::kVoxels) {
      const auto voxels = static_cast<size_t>(field.layout.stored_voxels());
      stamps_.emplace_back(device, voxels);
      stamps_.back().set_zero();
      view.stamps = stamps_.back().data();
      for (uint32_t*& list : view.lists) {
        lists_.emplace_back(device, voxels);
        list = lists_.back().data();
      }
    }
    if (listed == Listed::kBricks) {
      const auto bricks = static_cast<size_t>(field.layout.bricks());
      for (uint32_t*& bits : view.clamped) {
        bits_.emplace_back(device, bricks * kClampedWords);
        bits = bits_.back().data();
      }
      bits_.emplace_back(device, bricks * kVoxelWords);
      view.unequal = bits_.back().data();
    }
    view.first_word = words;
    words += active_words(view.layout);
    host_views_.push_back(view);
    if (view.speeds.advection[0] != nullptr) is_plain_ = false;
  }
}

void DeviceJob::make_groups() {
  for (const FieldRange& group : groups_of(job_)) {
    if (group.first < first_ || group.last > last_) continue;
    if (group.last - group.first > 1) is_plain_ = false;
    for (size_t f = group.first; f < group.last; ++f) {
      host_views_[f - first_].group_first = static_cast<int32_t>(group.first - first_);
      host_views_[f - first_].group_count = static_cast<int32_t>(group.last - group.first);
    }
  }
}

bool DeviceJob::is_running() const {
  return std::any_of(job_.progress.begin() + static_cast<std::ptrdiff_t>(first_),
                     job_.progress.begin() + static_cast<std::ptrdiff_t>(last_),
                     [](const FieldProgress& p) { return p.stop == Stop::kNone; });
}

void DeviceJob::end() {
  for (int32_t f = 0; f < fields(); ++f) {
    if (progress(f).stop != Stop::kNone) active(f) = {};
  }
}

void DeviceJob::stop_before_steps(const std::vector<uint32_t>& listed) {
  for (int32_t f = 0; f < fields(); ++f) {
    const FieldView& own = view(f);
    bool is_empty = true;
    for (int32_t k = own.group_first; k < own.group_first + own.group_count; ++k) {
      is_empty = is_empty && listed[static_cast<size_t>(k)] == 0;
    }
    progress(f).stop = stop_before(progress(f), is_empty, rules());
  }
}

void DeviceJob::begin(int64_t steps) {
  progress_.upload({job_.progress.data() + first_, last_ - first_});
  memory::set_zero(context_.device, counts_.data(),
                   static_cast<size_t>(steps * fields()) * sizeof(StepCount));
}

void DeviceJob::finish() {
  const std::vector<FieldProgress> after = progress_.to_vector();
  int64_t most = 0;
  for (int32_t f = 0; f < fields(); ++f) {
    most = std::max(most, after[static_cast<size_t>(f)].iterations - progress(f).iterations);
  }
  std::vector<StepCount> counts(static_cast<size_t>(most * fields()));
  counts_.download(counts);
  for (int32_t f = 0; f < fields(); ++f) {
    const int64_t done = after[static_cast<size_t>(f)].iterations - progress(f).iterations;
    auto& history = job_.history[first_ + static_cast<size_t>(f)];
    for (int64_t s = 0; s < done; ++s) {
      history.push_back(counts[static_cast<size_t>(s * fields() + f)]);
    }
    progress(f) = after[static_cast<size_t>(f)];
  }
}

void for_parts(const EvolveJob& job, const std::function<void(size_t first, size_t last)>& run) {
  constexpr size_t kMost = 64;
  const std::vector<FieldRange> groups = groups_of(job);
  for (size_t g = 0; g < groups.size();) {
    const size_t first = groups[g].first;
    size_t last = groups[g].last;
    for (++g; g < groups.size() && groups[g].last - first <= kMost; ++g) last = groups[g].last;
    run(first, last);
  }
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
