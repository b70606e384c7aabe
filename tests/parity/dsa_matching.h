// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/match/match.h"
#include "larch/dsa/registration.h"
#include "tests/parity/cuda_context.h"
#include "tests/parity/dsa_sequences.h"

// Block matching on both devices.
namespace larch::dsa::test {

inline std::vector<int32_t> shifts_of(const Prepared& p, const DsaConfig& config,
                                      const Context& context,
                                      const std::vector<Vec3i>& centres = {}) {
  const Buffer<Vec3i> centre(context.device, centres);
  return bin_shifts(p.at_zero, p.mask_at_zero.values.data(), centre.data(), p.table, config,
                    context)
      .to_vector();
}

/// A first pass, and, unless it is literal, a second one over its field if `passes` is 2.
struct Matching {
  int block = larch::test::sized(64, 32), step = block;
  int range = larch::test::sized(10, 2), passes = 1;
  bool has_centres = false;
  int bin_shift = -1;  ///< of all frames; below 0: as they have it
};

inline std::vector<BlockMatch> match_all(const Sequence& s, const Matching& what,
                                         const DsaConfig& config, const Context& context) {
  const Prepared p = prepare(s, config, context);
  const auto frames = static_cast<size_t>(s.count());
  std::vector<Vec3i> centres;
  centres.reserve(frames);
  for (size_t f = 0; what.has_centres && f < frames; ++f) {
    centres.push_back({static_cast<int>(f) - 2, 1, 0});
  }
  const Device& device = context.device;
  const Buffer<Vec3i> centre(device, centres);
  std::vector<int32_t> widths = shifts_of(p, config, context, centres);
  if (what.bin_shift >= 0) widths.assign(frames, what.bin_shift);
  const Buffer<int32_t> shifts(device, widths);
  const BlockGrid grid =
      make_block_grid(s.size, {what.block, what.block, 1}, {what.step, what.step, 1});
  MatchJob job;
  job.config = &config;
  job.grid = &grid;
  job.range = what.range;
  job.mask = p.mask.values.data();
  job.mask_at_zero = p.mask_at_zero.values.data();
  job.contrast = p.at_zero.values.data();
  job.frames = s.count();
  job.bin_shift = shifts.data();
  job.centre = centre.data();
  Buffer<BlockMatch> out(device, frames * static_cast<size_t>(grid.blocks()));
  job.out = out.data();
  match_blocks(job, context);
  std::vector<BlockMatch> all = out.to_vector();
  if (what.passes < 2 || config.literal) return all;
  const Buffer<Vec3i> base = spline_field(grid, vectors_of(all), context);
  const BlockGrid pixels = pixel_grid(s.size);
  const BlockGrid fine = make_block_grid(s.size, {48, 48, 1}, {32, 32, 1});
  Buffer<BlockMatch> refined(device, frames * static_cast<size_t>(fine.blocks()));
  job.base = {&pixels, base.data()};
  job.grid = &fine;
  job.range = 2;
  job.centre = nullptr;
  job.out = refined.data();
  match_blocks(job, context);
  const std::vector<BlockMatch> second = refined.to_vector();
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

inline std::array<uint8_t, sizeof(BlockMatch)> bytes_of(const BlockMatch& match) {
  std::array<uint8_t, sizeof(BlockMatch)> bytes;
  std::memcpy(bytes.data(), &match, bytes.size());
  return bytes;
}

/// The first block of which a byte differs, -1 if none does, -2 for another number of blocks.
inline int64_t first_difference(const std::vector<BlockMatch>& a,
                                const std::vector<BlockMatch>& b) {
  if (a.size() != b.size()) return -2;
  for (size_t i = 0; i < a.size(); ++i) {
    if (bytes_of(a[i]) != bytes_of(b[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

inline void check_matches(const Sequence& s, const Matching& what, const DsaConfig& config) {
  CAPTURE(s.name, what.block, what.range, what.passes, what.has_centres, what.bin_shift);
  CAPTURE(static_cast<int>(config.metric), config.literal);
  const auto on_cpu = match_all(s, what, config, cpu_context());
  const auto on_cuda = match_all(s, what, config, larch::test::cuda_context());
  const int64_t at = first_difference(on_cpu, on_cuda);
  CHECK(at == -1);
  if (at >= 0) {
    const BlockMatch &a = on_cpu[static_cast<size_t>(at)], &b = on_cuda[static_cast<size_t>(at)];
    CHECK(a.found.x == b.found.x);
    CHECK(a.found.y == b.found.y);
    CHECK(a.before.sum == b.before.sum);
    CHECK(a.best.sum == b.best.sum);
    CHECK(a.best.count == b.best.count);
    CHECK(a.bend.xx == b.bend.xx);
    CHECK(a.bend.yy == b.bend.yy);
    CHECK(a.bend.xy == b.bend.xy);
    CHECK(a.counted == b.counted);
    CHECK(a.overflow == b.overflow);
    CHECK(a.flags == b.flags);
  }
}

}  // namespace larch::dsa::test
