// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/levelset/field_view.cuh"
#include "larch/core/buffer.h"

// What the trackers share on the host: fields of a job that are moved together, on the device.
namespace larch::levelset::cuda {

/// What is listed.
enum class Listed { kBricks, kVoxels };

/// Steps of one launch.
constexpr int64_t kMostSteps = 2000;

/// Fields `first` to `last` - 1 of a job, on its device. Holds what their kernels share.
class DeviceJob {
 public:
  /// Uploads, with stamps and lists for voxels, bits for bricks, and with counts. Throws
  /// MemoryError that gives the bytes needed, and UsageError where an image or a group has more
  /// than the kernels can number.
  DeviceJob(EvolveJob& job, size_t first, size_t last, Listed listed, const Context& context);

  int32_t fields() const { return static_cast<int32_t>(last_ - first_); }
  const FieldView& view(int32_t field) const { return host_views_[static_cast<size_t>(field)]; }
  FieldProgress& progress(int32_t field) {
    return job_.progress[first_ + static_cast<size_t>(field)];
  }
  ActiveSet& active(int32_t field) { return job_.active[first_ + static_cast<size_t>(field)]; }
  const FieldView* views() const { return views_.data(); }
  FieldProgress* progress() { return progress_.data(); }
  StepCount* counts() { return counts_.data(); }
  const StopRules& rules() const { return job_.stops; }
  const Context& context() const { return context_; }
  int32_t most_blocks() const { return job_.most_blocks; }
  bool is_plain() const { return is_plain_; }
  bool is_running() const;
  /// Is there another step?
  bool goes_on() const { return is_running() && !context_.stop_requested(); }
  /// After all steps: fields that have stopped for good have no active set.
  void end();

  /// Ends fields that stop without a step. `listed`: by field, of what is active.
  void stop_before_steps(const std::vector<uint32_t>& listed);
  /// Before a launch of `steps`: the progress on the device, and counts of 0.
  void begin(int64_t steps);
  /// After it: progress and history of what was done.
  void finish();

 private:
  void make_views(Listed listed);
  void make_groups();

  EvolveJob& job_;
  size_t first_, last_;
  const Context& context_;
  bool is_plain_ = true;
  std::vector<FieldView> host_views_{};
  std::vector<Buffer<uint32_t>> stamps_{}, lists_{}, bits_{};
  Buffer<FieldView> views_{};
  Buffer<FieldProgress> progress_{};
  Buffer<StepCount> counts_{};  ///< by step of a launch and field
};

/// Calls `run` with parts of a job that fit one launch: whole groups, of up to 64 fields unless a
/// group has more.
void for_parts(const EvolveJob& job, const std::function<void(size_t first, size_t last)>& run);

/// Bytes of shared memory that a launch may ask for, for each block of threads.
size_t most_shared_bytes(const Device& device);

/// Blocks of threads of a cooperative launch: all that run at once, or fewer where asked for.
/// Throws DeviceError where not one does, or the card has no such launches.
uint32_t cooperative_blocks(const void* kernel, uint32_t threads, size_t shared_bytes,
                            int32_t most_blocks, const Device& device);

/// Finds what the first step has to compute for the fields whose active set is not known, and
/// counts the voxels inside. Bricks: sets their bits in `bricks` (ActiveBits::words). Voxels: in
/// the lists of the views, with stamps of 1. Returns how much is active by field; fields with known
/// sets get the number of their items.
std::vector<uint32_t> first_set(DeviceJob& job, Listed listed, uint32_t* bricks = nullptr);

/// Makes the bits of the bricks of all fields that run (clamped_bits.cuh) from both buffers.
void find_clamped(DeviceJob& job);

/// Evolves the fields of a job by launches of up to kMostSteps steps. Active holds what is active:
/// begin() before the first launch, run(steps) for one, finish() after the last.
template <class Active>
void evolve_active(DeviceJob& job, int64_t steps) {
  Active active(job);
  active.begin();
  for (int64_t done = 0; done < steps && job.goes_on(); done += kMostSteps) {
    active.run(std::min(kMostSteps, steps - done));
  }
  active.finish();
  job.end();
}

}  // namespace larch::levelset::cuda
