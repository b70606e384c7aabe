// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/registration.h"

#include <algorithm>
#include <utility>

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

/// Counts blocks whose best displacement lies at the edge of the window.
void count_edge_hits(std::span<const BlockMatch> matches, std::span<FrameFigures> figures) {
  for (size_t i = 0; i < matches.size(); ++i) {
    figures[i * figures.size() / matches.size()].edge_hits +=
        (matches[i].flags & kBlockAtEdge) != 0 ? 1 : 0;
  }
}

/// Matches frames again whose bins were too narrow for their differences.
void widen_bins(const MatchJob& job, Buffer<BlockMatch>& matches, Buffer<int32_t>& bin_shift,
                std::span<FrameFigures> figures, const Context& context) {
  const auto blocks = static_cast<size_t>(job.grid->blocks());
  std::vector<BlockMatch> found = matches.to_vector();
  for (size_t f = 0; f < figures.size(); ++f) {
    int32_t& shift = figures[f].bin_shift;
    const std::span<BlockMatch> of_frame(found.data() + f * blocks, blocks);
    for (int i = 0; i < kMaximumWidenings && is_overflowing(of_frame); ++i) {
      if (shift >= kMaximumShift) break;
      ++shift;
      bin_shift.upload(std::span<const int32_t>(&shift, 1), f);
      match_blocks(job_of_frame(job, static_cast<int64_t>(f)), context);
      matches.download(of_frame, f * blocks);
    }
  }
}

/// Returns the middle of the window of each frame: motion that is known before, or the frame's
/// shift.
Buffer<Vec3i> window_centres(const SequenceMask& mask, const SampledFrames& frames,
                             const DsaConfig& config, const Context& context) {
  std::vector<Vec3i> centres, motion;
  if (mask.start != Vec3i{}) {
    motion.assign(static_cast<size_t>(frames.at_zero.count), mask.start);
  } else if (!config.literal && mask.size.z == 1) {
    motion = frames.shifts;
  }
  for (const Vec3i& shift : motion) {
    const auto nearest = [](int32_t q16) {
      return (q16 + (1 << (kVectorBits - 1))) >> kVectorBits;
    };
    centres.push_back({nearest(shift.x), nearest(shift.y), nearest(shift.z)});
  }
  return Buffer<Vec3i>(context.device, centres);
}

/// Returns the first pass: from whole pixels within the range. `bin_shift`: of each frame, found
/// here.
std::vector<BlockMatch> match_from_whole_pixels(MatchJob job, const SequenceMask& mask,
                                                const SampledFrames& frames,
                                                Buffer<int32_t>& bin_shift,
                                                std::span<FrameFigures> figures,
                                                const Context& context) {
  const DsaConfig& config = *job.config;
  const Buffer<Vec3i> centres = window_centres(mask, frames, config, context);
  bin_shift =
      bin_shifts(frames.at_zero, job.mask_at_zero, centres.data(), mask.table, config, context);
  const std::vector<int32_t> shifts = bin_shift.to_vector();
  for (size_t f = 0; f < shifts.size(); ++f) figures[f].bin_shift = shifts[f];
  job.range = config.range;
  job.bin_shift = bin_shift.data();
  job.centre = centres.data();
  Buffer<BlockMatch> matches(context.device, static_cast<size_t>(job.frames * job.grid->blocks()));
  job.out = matches.data();
  match_blocks(job, context);
  if (!config.literal) widen_bins(job, matches, bin_shift, figures, context);
  return matches.to_vector();
}

/// Returns a later pass: on top of the field of `before`, of the pass before.
std::vector<BlockMatch> match_over_field(MatchJob job, const BlockGrid& grid_before,
                                         std::span<const BlockMatch> before,
                                         const Context& context) {
  const DenseVectors base = dense_vectors(grid_before, vectors_of(before), *job.config, context);
  Buffer<BlockMatch> matches(context.device, static_cast<size_t>(job.frames * job.grid->blocks()));
  job.range = kRefineRange;
  job.base = {&base.grid, base.vectors.data()};
  job.out = matches.data();
  match_blocks(job, context);
  return matches.to_vector();
}

/// Returns the block whose centre is nearest to a node, the first of equally near ones.
int32_t nearest_block(const BlockGrid& blocks, const Vec3i& twice_node) {
  int32_t nearest = 0, least = INT32_MAX;
  for (int32_t block = 0; block < blocks.blocks(); ++block) {
    const Vec3i d = blocks.twice_centre(block) - twice_node;
    const int32_t far = magnitude_of(d.x) + magnitude_of(d.y) + magnitude_of(d.z);
    if (far < std::exchange(least, std::min(least, far))) nearest = block;
  }
  return nearest;
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

/// Flexible pixel shift from the result of block matching, with `blocks`: the nodes.
std::vector<BlockMatch> move_nodes(MatchJob job, const BlockGrid& blocks,
                                   std::span<const BlockMatch> matches, const Context& context) {
  const DsaConfig& config = *job.config;
  const BlockGrid nodes = last_grid(config, blocks.image);
  const std::vector<Vec3i> found = vectors_of(matches);
  const auto per_frame = static_cast<size_t>(blocks.blocks());
  std::vector<Vec3i> vectors;
  for (size_t first = 0; first < found.size(); first += per_frame) {
    const auto start = vectors_at(nodes, blocks, std::span(found).subspan(first, per_frame),
                                  border_field_of(config, /*is_volume=*/false));
    vectors.insert(vectors.end(), start.begin(), start.end());
  }
  std::vector<BlockMatch> out = nodes_of_blocks(nodes, blocks, matches, job.frames);
  job.grid = &nodes;
  job.out = out.data();
  flexible_shift(job, vectors, context);
  return out;
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

DenseVectors dense_vectors(const BlockGrid& grid, std::span<const Vec3i> vectors,
                           const DsaConfig& config, const Context& context) {
  if (!takes_spline(config, grid.image)) return {grid, Buffer<Vec3i>(context.device, vectors)};
  return {pixel_grid(grid.image), spline_field(grid, vectors, context)};
}

BlockGrid grid_of_pass(const Pass& pass, const Vec3i& size) {
  const bool is_volume = size.z > 1;
  return make_block_grid(size, {pass.block, pass.block, is_volume ? pass.block : 1},
                         {pass.step, pass.step, is_volume ? pass.step : 1});
}

std::vector<BlockMatch> register_frames(const SequenceMask& mask, const SampledFrames& frames,
                                        const DsaConfig& config, std::span<FrameFigures> figures,
                                        const Context& context) {
  MatchJob job;
  job.config = &config;
  job.mask = mask.samples.data();
  job.mask_at_zero = mask.at_zero.data();
  job.contrast = frames.at_zero.values.data();
  job.frames = frames.at_zero.count;
  std::vector<BlockMatch> matches;
  Buffer<int32_t> bin_shift;
  BlockGrid grid_before;
  for (const Pass& pass : passes_of(config, mask.size.z > 1)) {
    const BlockGrid grid = grid_of_pass(pass, mask.size);
    const bool is_first = matches.empty();
    job.grid = &grid;
    matches = is_first ? match_from_whole_pixels(job, mask, frames, bin_shift, figures, context)
                       : match_over_field(job, grid_before, matches, context);
    job.bin_shift = bin_shift.data();
    if (config.literal) {
      replace_inconsistent(grid, matches, context);
    } else {
      solve_motion(grid, frames.shifts, matches, context);
    }
    if (is_first) count_edge_hits(matches, figures);
    grid_before = grid;
  }
  if (config.method == Method::kFlex) return move_nodes(job, grid_before, matches, context);
  return matches;
}

}  // namespace larch::dsa
