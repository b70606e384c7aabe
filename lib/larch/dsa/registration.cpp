// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/registration.h"

#include <algorithm>

#include "larch/dsa/field/field.h"
#include "larch/dsa/field/flexible_shift.h"
#include "larch/dsa/field/motion_solve.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/literal.h"

namespace larch::dsa {
namespace {

/// Motion that a pass finds on top of the field of the pass before, pixels.
constexpr int kRefineRange = 4;
/// A frame is matched again if more than one pixel in so many is beyond the bins,
constexpr uint64_t kMaximumOverflow = 20;
/// so often at most.
constexpr int kMaximumWidenings = 3;

/// One pass over a batch.
struct PassInput {
  const BlockGrid& grid;
  const SequenceMask& mask;
  const ComparedFrames& frames;
  const DsaConfig& config;
};

/// Returns the job of a pass but for `out`; its range is that of the configuration.
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

/// The dense field of vectors as blocks are matched over it.
class DenseBase {
 public:
  DenseBase(const BlockGrid& grid, std::span<const BlockMatch> matches, const DsaConfig& config,
            const Context& context)
      : grid_(takes_spline(config, grid.image) ? pixel_grid(grid.image) : grid) {
    const std::vector<Vec3i> vectors = vectors_of(matches);
    vectors_ = takes_spline(config, grid.image) ? spline_field(grid, vectors, context)
                                                : Buffer<Vec3i>(context.device, vectors);
  }
  BaseField field() const { return {&grid_, vectors_.data()}; }

 private:
  BlockGrid grid_;
  Buffer<Vec3i> vectors_{};
};

/// Returns a job for one of its frames.
MatchJob job_of_frame(MatchJob job, int64_t frame) {
  const Vec3i& size = job.grid->image;
  const int64_t blocks = job.grid->blocks();
  job.contrast += frame * static_cast<int64_t>(size.x) * size.y * size.z;
  job.frames = 1;
  job.bin_shift += frame;
  if (job.centre != nullptr) job.centre += frame;
  job.out += frame * blocks;
  return job;
}

/// Tells whether too many pixels of the searched blocks of a frame are beyond the bins.
bool is_overflowing(std::span<const BlockMatch> matches) {
  uint64_t counted = 0, beyond = 0;
  for (const BlockMatch& match : matches) {
    if ((match.flags & kBlockOutside) != 0) continue;
    counted += match.counted;
    beyond += match.overflow;
  }
  return beyond * kMaximumOverflow > counted;
}

/// Blocks of each frame whose best displacement lies at the edge of the window.
std::vector<int32_t> edge_hits(std::span<const BlockMatch> matches, int32_t blocks) {
  std::vector<int32_t> hits(matches.size() / static_cast<size_t>(blocks), 0);
  for (size_t i = 0; i < matches.size(); ++i) {
    const bool is_at_edge = (matches[i].flags & kBlockAtEdge) != 0;
    hits[i / static_cast<size_t>(blocks)] += is_at_edge ? 1 : 0;
  }
  return hits;
}

/// Matches frames again whose bins were too narrow for their differences.
void widen_bins(const PassInput& pass, const MatchJob& job, Buffer<BlockMatch>& matches,
                Buffer<int32_t>& bin_shift, Registered& out, const Context& context) {
  const auto blocks = static_cast<size_t>(pass.grid.blocks());
  std::vector<BlockMatch> found = matches.to_vector();
  for (size_t f = 0; f < out.bin_shifts.size(); ++f) {
    const std::span<BlockMatch> of_frame(found.data() + f * blocks, blocks);
    for (int i = 0; i < kMaximumWidenings && is_overflowing(of_frame); ++i) {
      if (out.bin_shifts[f] >= kMaximumShift) break;
      ++out.bin_shifts[f];
      out.has_wide_bins[f] = 1;
      bin_shift.upload(std::span<const int32_t>(&out.bin_shifts[f], 1), f);
      match_blocks(job_of_frame(job, static_cast<int64_t>(f)), context);
      matches.download(of_frame, f * blocks);
    }
  }
}

/// Returns the middle of the window of each frame: motion that is known before, or the frame's
/// shift.
Buffer<Vec3i> window_centres(const SequenceMask& mask, const ComparedFrames& frames,
                             const DsaConfig& config, const Context& context) {
  std::vector<Vec3i> centres, motion;
  if (mask.start != Vec3i{}) {
    motion.assign(static_cast<size_t>(frames.at_zero.count), mask.start);
  } else if (!config.literal && mask.size.z == 1) {
    motion = frames.shifts;
  }
  for (const Vec3i& shift : motion) {
    Vec3i nearest;
    for (int axis = 0; axis < 3; ++axis) {
      nearest[axis] = (shift[axis] + (1 << (kVectorBits - 1))) >> kVectorBits;
    }
    centres.push_back(nearest);
  }
  return Buffer<Vec3i>(context.device, centres);
}

/// Returns the first pass: from whole pixels within the range.
Buffer<BlockMatch> match_from_whole_pixels(const PassInput& pass, Buffer<int32_t>& bin_shift,
                                           Registered& out, const Context& context) {
  const SequenceMask& mask = pass.mask;
  const ComparedFrames& frames = pass.frames;
  const Buffer<Vec3i> centres = window_centres(mask, frames, pass.config, context);
  bin_shift = bin_shifts(frames.at_zero, mask.at_zero.data(), centres.data(), mask.table,
                         pass.config, context);
  out.bin_shifts = bin_shift.to_vector();
  out.has_wide_bins.assign(out.bin_shifts.size(), 0);
  Buffer<BlockMatch> matches(context.device,
                             static_cast<size_t>(frames.at_zero.count * pass.grid.blocks()));
  MatchJob job = job_of(pass, bin_shift);
  job.centre = centres.data();
  job.out = matches.data();
  match_blocks(job, context);
  if (!pass.config.literal) widen_bins(pass, job, matches, bin_shift, out, context);
  return matches;
}

/// Returns a later pass: on top of the field of the pass before.
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

/// Returns the block whose centre is nearest to a node, the first of equally near ones.
int32_t nearest_block(const BlockGrid& blocks, const Vec3i& twice_node) {
  Vec3i nearest;
  for (int axis = 0; axis < 3; ++axis) {
    const auto& starts = blocks.starts[static_cast<size_t>(axis)];
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < blocks.count[axis]; ++i) {
      const int32_t centre = 2 * starts[static_cast<size_t>(i)] + blocks.block[axis] - 1;
      const int32_t far = magnitude_of(centre - twice_node[axis]);
      if (far < least) {
        least = far;
        nearest[axis] = i;
      }
    }
  }
  return (nearest.z * blocks.count.y + nearest.y) * blocks.count.x + nearest.x;
}

/// Nodes as they are before they are moved: reliable where the blocks at them are.
std::vector<BlockMatch> nodes_of_blocks(const BlockGrid& nodes, const BlockGrid& blocks,
                                        std::span<const BlockMatch> matches, int64_t frames) {
  std::vector<BlockMatch> out(static_cast<size_t>(frames * nodes.blocks()));
  for (int32_t node = 0; node < nodes.blocks(); ++node) {
    const int32_t block = nearest_block(blocks, nodes.twice_centre(node));
    for (int64_t f = 0; f < frames; ++f) {
      const auto from = static_cast<size_t>(f * blocks.blocks() + block);
      out[static_cast<size_t>(f * nodes.blocks() + node)].flags =
          matches[from].flags & (kBlockOutside | kBlockUnreliable);
    }
  }
  return out;
}

/// Flexible pixel shift from the result of block matching, with `blocks`.
void move_nodes(const PassInput& pass, const Buffer<int32_t>& bin_shift, Registered& out,
                const Context& context) {
  const auto& [blocks, mask, frames, config] = pass;
  const int64_t count = frames.at_zero.count;
  const BlockGrid nodes = last_grid(config, mask.size);
  const std::vector<Vec3i> found = vectors_of(out.matches);
  const auto per_frame = static_cast<size_t>(blocks.blocks());
  std::vector<Vec3i> vectors;
  for (size_t f = 0; f < static_cast<size_t>(count); ++f) {
    const auto start = vectors_at(nodes, blocks, std::span(found).subspan(f * per_frame, per_frame),
                                  border_field_of(config, /*is_volume=*/false));
    vectors.insert(vectors.end(), start.begin(), start.end());
  }
  out.matches = nodes_of_blocks(nodes, blocks, out.matches, count);
  FlexibleJob job;
  job.metric = config.metric;
  job.nodes = &nodes;
  job.mask = mask.samples.data();
  job.contrast = frames.at_zero.values.data();
  job.frames = count;
  job.bin_shift = bin_shift.data();
  job.vectors = vectors.data();
  job.matches = out.matches.data();
  flexible_shift(job, context);
}

}  // namespace

std::vector<Vec3i> vectors_of(std::span<const BlockMatch> matches) {
  std::vector<Vec3i> vectors;
  vectors.reserve(matches.size());
  for (const BlockMatch& match : matches) vectors.push_back(match.vector);
  return vectors;
}

bool takes_spline(const DsaConfig& config, const Vec3i& size) {
  return config.allows_spline && config.method == Method::kBlock && !config.literal && size.z == 1;
}

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
  for (const Pass& pass : passes_of(config, mask.size.z > 1)) {
    const BlockGrid grid = grid_of_pass(pass, mask.size);
    const PassInput input{grid, mask, frames, config};
    const Buffer<BlockMatch> found =
        out.matches.empty()
            ? match_from_whole_pixels(input, bin_shift, out, context)
            : match_over_field(input, DenseBase(base_grid, out.matches, config, context).field(),
                               bin_shift, context);
    out.matches = found.to_vector();
    if (config.literal) {
      replace_inconsistent(grid, out.matches, context);
    } else {
      solve_motion(grid, frames.shifts, out.matches, context);
    }
    if (out.edge_hits.empty()) out.edge_hits = edge_hits(out.matches, grid.blocks());
    base_grid = grid;
  }
  if (config.method == Method::kFlex) {
    move_nodes({base_grid, mask, frames, config}, bin_shift, out, context);
  }
  return out;
}

}  // namespace larch::dsa
