// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>

#include "cuda/levelset/voxel_step.cuh"

// Listings 1 and 2 of the supplement of Roberts et al. 2010: a buffer per neighbour and one for the
// voxel itself; what is in several of them is removed in seven passes, without atomic operations.
// Twice: the neighbours of neighbours hold the stencil, which has voxels across edges.
namespace larch::levelset::cuda {
namespace {

constexpr int32_t kBuffers = 7;

/// One round: what `from` holds (kNoVoxel: nothing) and its six neighbours, each once, appended to
/// `to`. All threads of all blocks call it.
class BufferRound {
 public:
  __device__ BufferRound(const VoxelRun& run, const FieldView& view, uint32_t tag, uint32_t* sums)
      : run_(run), view_(view), tag_(tag), sums_(sums) {}

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
  __device__ void append(bool wanted, uint32_t at, uint32_t* to, uint32_t* length) const {
    const uint32_t place = append_of_block(static_cast<uint32_t>(wanted), length, sums_);
    if (wanted) to[place] = at;
  }
  __device__ void generate(const uint32_t* from, uint32_t count) const {
    for_tiles(count, [&](uint32_t item) {
      if (item >= count) return;
      const uint32_t at = __ldcg(from + item);
      if (at == kNoVoxel) {
        for (int32_t e = 0; e < kBuffers; ++e) run_.auxiliary[e][item] = kNoVoxel;
        return;
      }
      const VoxelPlace place(view_.layout, at);
#pragma unroll
      for (int32_t e = 0; e < kBuffers; ++e) {
        const VoxelOffset o = stencil_offset(e);
        const bool is_inside = (place.inside & needed_inside(e)) == needed_inside(e);
        run_.auxiliary[e][item] = is_inside ? place.at(o.x, o.y, o.z) : kNoVoxel;
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
  uint32_t* sums_;
};

/// The lists of a field for the next step, from what changed.
__device__ void list_field(const VoxelRun& run, const VoxelBlock& block, int32_t field,
                           int32_t step, uint32_t* sums) {
  const auto grid = cooperative_groups::this_grid();
  const FieldView& view = block.views()[field];
  const uint32_t tag = run.epoch + 2 * static_cast<uint32_t>(step);
  uint32_t* between = run.auxiliary[kBuffers];
  uint32_t* between_length = run.between + int64_t{step} * run.fields + field;
  const BufferRound first(run, view, tag, sums);
  first.run(grid, run.changed + field * run.changed_each, __ldcg(block.length(field, step)),
            between, between_length);
  grid.sync();
  const BufferRound second(run, view, tag + 1, sums);
  uint32_t* list = block.list(field, step + 1);
  uint32_t* length = block.length(field, step + 1);
  second.run(grid, between, __ldcg(between_length), list, length);
  for (int32_t k = view.group_first; k < view.group_first + view.group_count; ++k) {
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
  __shared__ uint32_t sums[kVoxelThreads / 32 + 1];
  __shared__ StepCount sum;
  const VoxelBlock block(run, shared);
  const auto grid = cooperative_groups::this_grid();
  for (int32_t step = 0; step < run.steps; ++step) {
    for (int32_t f = 0; f < run.fields; ++f) {
      if (!block.is_running(f)) continue;
      const uint32_t length = __ldcg(block.length(f, step));
      LaneCount own;
      for (uint32_t first = blockIdx.x * kVoxelThreads; first < length;
           first += gridDim.x * kVoxelThreads) {
        const uint32_t item = first + threadIdx.x;
        const uint32_t at = item < length ? __ldcg(block.list(f, step) + item) : kNoVoxel;
        const bool has_changed = step_voxel(block.views(), f, block.side(f), at, own);
        if (item < length) {
          run.changed[f * run.changed_each + item] = has_changed ? at : kNoVoxel;
        }
      }
      StepCount count = total_of(own);
      if (blockIdx.x == 0 && threadIdx.x == 0) count.active = length;
      add_block(block.counts(step) + f, count, sum);
    }
    grid.sync();
    for (int32_t f = 0; f < run.fields; ++f) {
      if (block.is_running(f)) list_field(run, block, f, step, sums);
    }
    if (!block.advance(step)) break;
  }
  block.finish();
}

}  // namespace

const void* voxel_buffers_kernel() {
  return reinterpret_cast<const void*>(buffers_kernel);
}

}  // namespace larch::levelset::cuda
