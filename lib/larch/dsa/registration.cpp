// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/registration.h"

#include <algorithm>

#include "larch/dsa/field/consistency.h"
#include "larch/dsa/field/field.h"

namespace larch::dsa {
namespace {

/// Motion that a pass finds on top of the field of the pass before, pixels.
constexpr int kRefineRange = 2;
/// A frame is matched again if more than one pixel in so many is beyond the bins,
constexpr uint64_t kMostOverflow = 20;
/// so often at most.
constexpr int kMostWidenings = 3;

/// One pass over a batch.
struct PassInput {
  const BlockGrid& grid;
  const SequenceMask& mask;
  const ComparedFrames& frames;
  const DsaConfig& config;
};

MatchJob job_of(const PassInput& pass, const Buffer<int32_t>& bin_shift) {
  MatchJob job;
  job.config = &pass.config;
  job.grid = &pass.grid;
  job.range = pass.config.range;
  job.mask = pass.mask.samples.data();
  job.mask_at_zero = pass.mask.at_zero.data();
  job.contrast = pass.frames.at_zero.values.data();
  job.frames = pass.frames.at_zero.count;
  job.bin_shift = bin_shift.data();
  return job;
}

/// The same of one frame.
MatchJob job_of_frame(MatchJob job, int64_t frame) {
  const Vec3i& size = job.grid->image;
  const int64_t blocks = job.grid->blocks();
  job.contrast += frame * static_cast<int64_t>(size.x) * size.y * size.z;
  job.frames = 1;
  job.bin_shift += frame;
  if (job.centre != nullptr) job.centre += frame;
  if (job.start != nullptr) job.start += frame * blocks;
  job.out += frame * blocks;
  return job;
}

/// Whether too many pixels of the searched blocks of a frame are beyond the bins.
bool is_overflowing(std::span<const BlockMatch> matches) {
  uint64_t counted = 0, beyond = 0;
  for (const BlockMatch& match : matches) {
    if ((match.flags & kBlockOutside) != 0) continue;
    counted += match.counted;
    beyond += match.overflow;
  }
  return beyond * kMostOverflow > counted;
}

/// Matches frames again whose bins were too narrow for their differences.
void widen_bins(const PassInput& pass, const MatchJob& job, Buffer<BlockMatch>& matches,
                Buffer<int32_t>& bin_shift, Registered& out, const Context& context) {
  const auto blocks = static_cast<size_t>(pass.grid.blocks());
  std::vector<BlockMatch> found = matches.to_vector();
  for (size_t f = 0; f < out.bin_shifts.size(); ++f) {
    const std::span<BlockMatch> of_frame(found.data() + f * blocks, blocks);
    for (int i = 0; i < kMostWidenings && is_overflowing(of_frame); ++i) {
      if (out.bin_shifts[f] >= kMostShift) break;
      ++out.bin_shifts[f];
      out.has_wide_bins[f] = 1;
      bin_shift.upload(std::span<const int32_t>(&out.bin_shifts[f], 1), f);
      match_blocks(job_of_frame(job, static_cast<int64_t>(f)), context);
      matches.download(of_frame, f * blocks);
    }
  }
}

/// The middle of the window of each frame, for Init::kGlobal.
Buffer<Vec3i> window_centres(const ComparedFrames& frames, const DsaConfig& config,
                             const Context& context) {
  std::vector<Vec3i> centres;
  if (config.init == Init::kGlobal) {
    for (const Vec3i& shift : frames.shifts) {
      Vec3i nearest;
      for (int axis = 0; axis < 3; ++axis) {
        nearest[axis] = (shift[axis] + (1 << (kVectorBits - 1))) >> kVectorBits;
      }
      centres.push_back(nearest);
    }
  }
  return Buffer<Vec3i>(context.device, centres);
}

/// Where each block of the first pass starts, for Init::kPrevious.
Buffer<Vec3i> block_starts(const PassInput& pass, const Context& context) {
  if (pass.frames.start.empty()) return {};
  return Buffer<Vec3i>(context.device, vectors_at(pass.grid, last_grid(pass.config, pass.mask.size),
                                                  pass.frames.start, pass.config.border_field));
}

/// The first pass: from whole pixels within the range.
Buffer<BlockMatch> match_from_whole_pixels(const PassInput& pass, Buffer<int32_t>& bin_shift,
                                           Registered& out, const Context& context) {
  const SequenceMask& mask = pass.mask;
  const ComparedFrames& frames = pass.frames;
  const Buffer<Vec3i> centres = window_centres(frames, pass.config, context);
  const Buffer<Vec3i> starts = block_starts(pass, context);
  bin_shift = bin_shifts(frames.at_zero, mask.at_zero.data(), centres.data(), mask.table,
                         pass.config, context);
  out.bin_shifts = bin_shift.to_vector();
  out.has_wide_bins.assign(out.bin_shifts.size(), 0);
  Buffer<BlockMatch> matches(context.device,
                             static_cast<size_t>(frames.at_zero.count * pass.grid.blocks()));
  MatchJob job = job_of(pass, bin_shift);
  job.centre = centres.data();
  job.start = starts.data();
  job.out = matches.data();
  match_blocks(job, context);
  if (pass.config.bin_width == 0) widen_bins(pass, job, matches, bin_shift, out, context);
  return matches;
}

/// A later pass: on top of the field of the pass before.
Buffer<BlockMatch> match_over_field(const PassInput& pass, const BaseField& base,
                                    const Buffer<int32_t>& bin_shift, const Context& context) {
  Buffer<BlockMatch> matches(context.device,
                             static_cast<size_t>(pass.frames.at_zero.count * pass.grid.blocks()));
  MatchJob job = job_of(pass, bin_shift);
  job.range = kRefineRange;
  job.base = base;
  job.out = matches.data();
  match_blocks(job, context);
  return matches;
}

}  // namespace

BlockGrid grid_of_pass(const Pass& pass, const Vec3i& size) {
  const bool is_volume = size.z > 1;
  return make_block_grid(size, {pass.block, pass.block, is_volume ? pass.block : 1},
                         {pass.step, pass.step, is_volume ? pass.step : 1});
}

Registered register_frames(const SequenceMask& mask, const ComparedFrames& frames,
                           const DsaConfig& config, const Context& context) {
  Registered out;
  Buffer<int32_t> bin_shift;
  BlockGrid base_grid;
  for (const Pass& pass : passes_of(config)) {
    const BlockGrid grid = grid_of_pass(pass, mask.size);
    const PassInput input{grid, mask, frames, config};
    Buffer<BlockMatch> matches =
        out.vectors.empty()
            ? match_from_whole_pixels(input, bin_shift, out, context)
            : match_over_field(input, {&base_grid, out.vectors.data()}, bin_shift, context);
    replace_inconsistent(matches, grid, frames.at_zero.count, config, context);
    out.vectors = field_vectors(matches, grid, frames.at_zero.count, config, context);
    out.matches = matches.to_vector();
    base_grid = grid;
  }
  return out;
}

}  // namespace larch::dsa
