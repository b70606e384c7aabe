// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/match/match.h"
#include "tests/parity/cuda_context.h"
#include "tests/parity/dsa_sequences.h"

namespace larch::dsa {
namespace {

using larch::test::cuda_context;
using larch::test::small_tests;
using test::cpu_context;
using test::moving_pattern;
using test::name_of;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::sequences;

std::vector<int32_t> shifts_of(const Prepared& p, const DsaConfig& config, const Context& context,
                               const std::vector<Vec3i>& centres = {}) {
  const Buffer<Vec3i> centre(context.device, centres);
  return bin_shifts(p.at_zero, p.mask_at_zero.values.data(), centre.data(), p.table, config,
                    context)
      .to_vector();
}

/// A first pass, and a second one over its field if `passes` is 2.
struct Matching {
  int block = 64, step = 64, range = 10, passes = 1;
  bool has_centres = false, has_starts = false;
};

std::vector<BlockMatch> match_all(const Sequence& s, const Matching& what, const DsaConfig& config,
                                  const Context& context) {
  const Prepared p = prepare(s, config, context);
  const auto frames = static_cast<size_t>(s.count());
  std::vector<Vec3i> centres;
  centres.reserve(frames);
  for (size_t f = 0; what.has_centres && f < frames; ++f) {
    centres.push_back({static_cast<int>(f) - 2, 1, 0});
  }
  const Device& device = context.device;
  const Buffer<Vec3i> centre(device, centres);
  const Buffer<int32_t> shifts(device, shifts_of(p, config, context, centres));
  const BlockGrid grid =
      make_block_grid(s.size, {what.block, what.block, 1}, {what.step, what.step, 1});
  const auto blocks = static_cast<size_t>(grid.blocks());
  std::vector<Vec3i> starts;
  for (size_t i = 0; what.has_starts && i < frames * blocks; ++i) {
    starts.push_back({static_cast<int>(hash_below(1, 2, i, 600000)) - 300000,
                      static_cast<int>(hash_below(1, 3, i, 600000)) - 300000, 0});
  }
  const Buffer<Vec3i> start(device, starts);
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
  job.start = start.data();
  Buffer<BlockMatch> out(device, frames * blocks);
  job.out = out.data();
  match_blocks(job, context);
  std::vector<BlockMatch> all = out.to_vector();
  if (what.passes < 2) return all;
  std::vector<Vec3i> vectors;
  vectors.reserve(all.size());
  for (const BlockMatch& match : all) vectors.push_back(match.vector);
  const Buffer<Vec3i> base(device, vectors);
  const BlockGrid fine = make_block_grid(s.size, {48, 48, 1}, {32, 32, 1});
  Buffer<BlockMatch> refined(device, frames * static_cast<size_t>(fine.blocks()));
  job.base = {&grid, base.data()};
  job.grid = &fine;
  job.range = 2;
  job.centre = nullptr;
  job.start = nullptr;
  job.out = refined.data();
  match_blocks(job, context);
  const std::vector<BlockMatch> second = refined.to_vector();
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

std::array<uint8_t, sizeof(BlockMatch)> bytes_of(const BlockMatch& match) {
  std::array<uint8_t, sizeof(BlockMatch)> bytes;
  std::memcpy(bytes.data(), &match, bytes.size());
  return bytes;
}

/// The first block of which a byte differs, -1 if none does, -2 for another number of blocks.
int64_t first_difference(const std::vector<BlockMatch>& a, const std::vector<BlockMatch>& b) {
  if (a.size() != b.size()) return -2;
  for (size_t i = 0; i < a.size(); ++i) {
    if (bytes_of(a[i]) != bytes_of(b[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

void check_matches(const Sequence& s, const Matching& what, const DsaConfig& config) {
  CAPTURE(s.name, what.block, what.range, what.passes, what.has_centres, what.has_starts);
  CAPTURE(name_of(config.metric), name_of(config.search), name_of(config.subpixel),
          name_of(config.subsearch), name_of(config.overflow), name_of(config.border));
  const auto on_cpu = match_all(s, what, config, cpu_context());
  const auto on_cuda = match_all(s, what, config, cuda_context());
  const int64_t at = first_difference(on_cpu, on_cuda);
  CHECK(at == -1);
  if (at >= 0) {
    const BlockMatch &a = on_cpu[static_cast<size_t>(at)], &b = on_cuda[static_cast<size_t>(at)];
    CHECK(a.found.x == b.found.x);
    CHECK(a.found.y == b.found.y);
    CHECK(a.before.sum == b.before.sum);
    CHECK(a.best.sum == b.best.sum);
    CHECK(a.best.count == b.best.count);
    CHECK(a.confidence == b.confidence);
    CHECK(a.counted == b.counted);
    CHECK(a.overflow == b.overflow);
    CHECK(a.evaluations == b.evaluations);
    CHECK(a.flags == b.flags);
  }
}

TEST_CASE("samples of frames and their filtered ones are the same on both devices",
          "[dsa::to_samples][dsa::filter_at_zero]") {
  for (const Sequence& s : sequences()) {
    for (const Border border : {Border::kValid, Border::kClamp}) {
      for (const SubPixel subpixel : {SubPixel::kGain, SubPixel::kLinear}) {
        DsaConfig config;
        config.border = border;
        config.subpixel = subpixel;
        const Prepared a = prepare(s, config, cpu_context());
        const Prepared b = prepare(s, config, cuda_context());
        CAPTURE(s.name, name_of(border));
        CHECK(a.frames.values.to_vector() == b.frames.values.to_vector());
        CHECK(a.at_zero.values.to_vector() == b.at_zero.values.to_vector());
      }
    }
  }
  // A volume is filtered along z as well.
  Sequence volume = moving_pattern("volume", {37, 29, 1}, 12, 6);
  volume.size.z = 3;
  volume.mask.insert(volume.mask.end(), volume.frames.begin(), volume.frames.begin() + 2 * 37 * 29);
  for (const Border border : {Border::kValid, Border::kClamp}) {
    DsaConfig config;
    config.border = border;
    CHECK(prepare(volume, config, cpu_context()).at_zero.values.to_vector() ==
          prepare(volume, config, cuda_context()).at_zero.values.to_vector());
  }
}

TEST_CASE("bin widths of frames are the same on both devices", "[dsa::bin_shifts]") {
  for (const Sequence& s : sequences()) {
    const DsaConfig config;
    const Prepared a = prepare(s, config, cpu_context());
    const Prepared b = prepare(s, config, cuda_context());
    const std::vector<Vec3i> centres(static_cast<size_t>(s.count()), Vec3i{-3, 5, 0});
    CAPTURE(s.name);
    CHECK(shifts_of(a, config, cpu_context()) == shifts_of(b, config, cuda_context()));
    CHECK(shifts_of(a, config, cpu_context(), centres) ==
          shifts_of(b, config, cuda_context(), centres));
  }
}

TEST_CASE("blocks match the same on both devices: metrics, searches and samplings",
          "[dsa::match_blocks]") {
  for (const Sequence& s : sequences()) {
    for (const auto& metric : enum_names(static_cast<Metric*>(nullptr))) {
      for (const auto& search : enum_names(static_cast<Search*>(nullptr))) {
        for (const auto& subpixel : enum_names(static_cast<SubPixel*>(nullptr))) {
          for (const auto& subsearch : enum_names(static_cast<SubSearch*>(nullptr))) {
            if (small_tests() && subsearch.value != SubSearch::kFit) continue;
            DsaConfig config;
            config.metric = metric.value;
            config.search = search.value;
            config.subpixel = subpixel.value;
            config.subsearch = subsearch.value;
            check_matches(s, {}, config);
          }
        }
      }
    }
  }
}

TEST_CASE("blocks match the same on both devices: borders, overflow, starts and a second pass") {
  for (const Sequence& s : sequences()) {
    for (const Overflow overflow : {Overflow::kWrap, Overflow::kDiscard, Overflow::kClamp}) {
      for (const Border border : {Border::kValid, Border::kClamp}) {
        DsaConfig config;
        config.overflow = overflow;
        config.border = border;
        config.bin_width = 0.25;  // so that there is overflow
        Matching what;
        what.has_centres = border == Border::kClamp;
        what.has_starts = overflow != Overflow::kDiscard;
        what.passes = 2;
        check_matches(s, what, config);
        config.search = Search::kCds;
        config.subsearch = SubSearch::kCds;
        config.subpixel = overflow == Overflow::kClamp ? SubPixel::kLinear : SubPixel::kGain;
        check_matches(s, what, config);
      }
    }
  }
}

TEST_CASE("blocks and windows of any size match the same on both devices") {
  const Sequence s = moving_pattern("large", {270, 260, 1}, 12, 1);
  DsaConfig config;
  for (const int block : {8, 17, 31, 64, 100, 255}) {
    check_matches(s, {block, block == 8 ? 40 : block, block == 64 ? 3 : 5}, config);
  }
  if (small_tests()) return;
  // Too large for a multiprocessor: samples stay in the device's memory.
  check_matches(s, {64, 200, 64}, config);
  config.search = Search::kCds;
  check_matches(s, {255, 255, 64}, config);
  check_matches(s, {64, 64, 64}, config);
}

}  // namespace
}  // namespace larch::dsa
