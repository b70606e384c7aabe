// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/levelset/field_view.cuh"
#include "larch/core/buffer.h"

// A job on the device, as both trackers hold it on the host.
namespace larch::levelset::cuda {

/// Says what is listed.
enum class Listed { kBricks, kVoxels };

/// Steps of one launch.
constexpr int64_t kMaximumSteps = 2000;

/// A job on its device. Holds what its kernels share.
class DeviceJob {
 public:
  /// Uploads, with stamps and lists for voxels, bits for bricks, and with counts. Throws
  /// MemoryError that gives the bytes needed, and UsageError where there are more fields or an
  /// image is larger than the kernels can number.
  DeviceJob(EvolveJob& job, Listed listed, const Context& context);

  EvolveJob& job() { return job_; }
  const Context& context() const { return context_; }
  int32_t fields() const { return static_cast<int32_t>(job_.fields.size()); }
  const FieldView& view(int32_t field) const { return host_views_[static_cast<size_t>(field)]; }
  std::vector<uint32_t>& active(int32_t field) { return job_.active[static_cast<size_t>(field)]; }
  FieldViews views() const { return {views_.data(), fields()}; }
  /// Tells whether it is one field without edges.
  bool is_plain() const { return fields() == 1 && view(0).speeds.advection[0] == nullptr; }

  /// Before a launch of `steps`: the progress on the device, and counts of 0.
  JobView begin(int64_t steps);
  /// After it: progress and history of what was done.
  void finish();

 private:
  FieldView make_view(LevelsetField& field, Listed listed);

  EvolveJob& job_;
  const Context& context_;
  std::vector<FieldView> host_views_{};
  std::vector<Buffer<uint32_t>> stamps_{}, lists_{}, bits_{};
  Buffer<FieldView> views_{};
  Buffer<Progress> progress_{};
  Buffer<int64_t> inside_{};
  Buffer<StepCount> counts_{};
};

/// Returns bytes of shared memory that a launch may ask for, for each block of threads.
size_t most_shared_bytes(const Device& device);

/// Blocks of threads of a cooperative launch: all that run at once, or fewer where asked for.
/// Throws DeviceError where not one does, or the card has no such launches.
uint32_t cooperative_blocks(const void* kernel, uint32_t threads, size_t shared_bytes,
                            int32_t most_blocks, const Device& device);

/// Finds what the first step has to compute unless that is known, counts the voxels inside, and
/// ends the job if it stops without a step. Bricks: sets their bits in `bricks`
/// (ActiveBits::words). Voxels: in the lists of the views, with stamps of 1. Returns how much is
/// active by field.
std::vector<uint32_t> first_set(DeviceJob& job, Listed listed, uint32_t* bricks = nullptr);

/// Makes the bits of the bricks of all fields (clamped_bits.cuh) from both buffers.
void find_clamped(DeviceJob& job);

/// Evolves a job by launches of up to kMaximumSteps steps. Active holds what is active: begin()
/// before the first launch, run(steps) for one, and finish() at the end, if the job goes on.
template <class Active>
void evolve_active(DeviceJob& job, int64_t steps) {
  Active active(job);
  active.begin();
  for (int64_t done = 0; done < steps && goes_on(job.job(), job.context()); done += kMaximumSteps) {
    active.run(std::min(kMaximumSteps, steps - done));
  }
  if (job.job().progress.stop == Stop::kNone) active.finish();
}

}  // namespace larch::levelset::cuda
