// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/field/flexible_shift.h"
#include "larch/dsa/sequence.h"
#include "tests/parity/dsa_matching.h"

namespace larch::dsa {
namespace {

using larch::test::cuda_context;
using larch::test::sized;
using larch::test::small_tests;
using test::cpu_context;
using test::moving_pattern;
using test::name_of;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::sequences;
using test::shifts_of;

struct Moved {
  std::vector<BlockMatch> matches{};
  std::vector<Vec3i> vectors{};
};

/// Nodes after flexible_shift from vectors near the motion; some nodes stay.
Moved move_nodes(const Sequence& s, int32_t pitch, const DsaConfig& config,
                 const Context& context) {
  const Device& device = context.device;
  const Prepared p = prepare(s, config, context);
  const Buffer<int32_t> shifts(device, shifts_of(p, config, context));
  const BlockGrid nodes = make_node_grid(s.size, pitch);
  const auto all = static_cast<uint64_t>(s.count() * nodes.blocks());
  std::vector<Vec3i> starts;
  std::vector<BlockMatch> given(all);
  for (uint64_t i = 0; i < all; ++i) {
    const auto f = static_cast<int>(i / static_cast<uint64_t>(nodes.blocks())) + 1;
    starts.push_back({85197 * f - 203161 + static_cast<int>(hash_below(1, 1, i, 90000)),
                      157286 - 58982 * f - static_cast<int>(hash_below(1, 2, i, 90000)), 0});
    if (hash_below(1, 3, i, 7) == 0) given[i].flags = kBlockUnreliable;
    if (hash_below(1, 4, i, 11) == 0) given[i].flags = kBlockOutside;
  }
  Buffer<Vec3i> vectors(device, std::span<const Vec3i>(starts));
  Buffer<BlockMatch> matches(device, std::span<const BlockMatch>(given));
  FlexibleJob job;
  job.config = &config;
  job.nodes = &nodes;
  job.mask = p.mask.values.data();
  job.contrast = p.at_zero.values.data();
  job.frames = s.count();
  job.bin_shift = shifts.data();
  job.vectors = vectors.data();
  job.matches = matches.data();
  flexible_shift(job, context);
  return {matches.to_vector(), vectors.to_vector()};
}

void check_nodes(const Sequence& s, int32_t pitch, const DsaConfig& config) {
  CAPTURE(s.name, pitch, name_of(config.metric), name_of(config.subpixel),
          name_of(config.subsearch), name_of(config.overflow), name_of(config.border));
  const Moved a = move_nodes(s, pitch, config, cpu_context());
  const Moved b = move_nodes(s, pitch, config, cuda_context());
  CHECK(a.vectors == b.vectors);
  const int64_t at = test::first_difference(a.matches, b.matches);
  CHECK(at == -1);
  if (at < 0) return;
  const BlockMatch &one = a.matches[static_cast<size_t>(at)],
                   &two = b.matches[static_cast<size_t>(at)];
  CHECK(one.counted == two.counted);
  CHECK(one.before.sum == two.before.sum);
  CHECK(one.best.sum == two.best.sum);
  CHECK(one.evaluations == two.evaluations);
  CHECK(one.overflow == two.overflow);
  CHECK(one.flags == two.flags);
}

TEST_CASE("nodes move the same on both devices: metrics, samplings and searches",
          "[dsa::flexible_shift]") {
  for (const Sequence& s : sequences()) {
    for (const auto& metric : enum_names(static_cast<Metric*>(nullptr))) {
      for (const auto& subpixel : enum_names(static_cast<SubPixel*>(nullptr))) {
        for (const SubSearch subsearch : {SubSearch::kFit, SubSearch::kCds}) {
          if (small_tests() && subsearch != SubSearch::kFit) continue;
          DsaConfig config;
          config.metric = metric.value;
          config.subpixel = subpixel.value;
          config.subsearch = subsearch;
          check_nodes(s, 32, config);
        }
      }
    }
  }
}

TEST_CASE("nodes move the same on both devices: borders, overflow and pitches") {
  for (const Sequence& s : sequences()) {
    for (const Overflow overflow : {Overflow::kWrap, Overflow::kDiscard, Overflow::kClamp}) {
      for (const Border border : {Border::kValid, Border::kClamp}) {
        DsaConfig config;
        config.overflow = overflow;
        config.border = border;
        config.bin_width = 0.25;  // so that there is overflow
        if (small_tests() && (overflow != Overflow::kWrap || s.stored.bits != 8)) continue;
        check_nodes(s, border == Border::kClamp ? 64 : 23, config);
      }
    }
  }
  if (small_tests()) return;
  // More pixels around a node than a block may have.
  DsaConfig config;
  check_nodes(moving_pattern("large", {400, 390, 1}, 12, 1), 199, config);
  config.metric = Metric::kEntropy;
  check_nodes(moving_pattern("large", {400, 390, 1}, 12, 1), 199, config);
}

TEST_CASE("sequences are subtracted the same on both devices by flexible pixel shift") {
  for (const Sequence& s : sequences()) {
    const auto subtracted = [&](const Context& context) {
      DsaConfig config;
      config.method = Method::kFlex;
      config.passes = "48/48";
      config.range = sized(config.range, 2);
      const MaskInput input{s.size, {s.mask}, make_sample_table(s.stored, config), s.region, {}};
      return subtract_frames(make_mask(input, config, context), s.frames, config,
                             {true, true, true}, context);
    };
    CAPTURE(s.name);
    const SubtractedFrames a = subtracted(cpu_context()), b = subtracted(cuda_context());
    CHECK(a.difference == b.difference);
    CHECK(a.validity == b.validity);
    CHECK(a.vectors == b.vectors);
    CHECK(a.field_px == b.field_px);
    CHECK(test::first_difference(a.matches, b.matches) == -1);
  }
}

}  // namespace
}  // namespace larch::dsa
