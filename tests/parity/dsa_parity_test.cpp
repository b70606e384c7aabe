// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/match/match.h"
#include "tests/parity/cuda_context.h"
#include "tests/parity/dsa_matching.h"

namespace larch::dsa {
namespace {

using larch::test::cuda_context;
using larch::test::sized;
using larch::test::small_tests;
using test::check_matches;
using test::cpu_context;
using test::matched_configs;
using test::Matching;
using test::moving_pattern;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::sequences;
using test::shifts_of;

TEST_CASE("samples of frames and their filtered ones are the same on both devices",
          "[dsa::to_samples][dsa::filter_at_zero]") {
  for (const Sequence& s : sequences()) {
    const Prepared a = prepare(s, {}, cpu_context());
    const Prepared b = prepare(s, {}, cuda_context());
    CAPTURE(s.name);
    CHECK(a.frames.values.to_vector() == b.frames.values.to_vector());
    CHECK(a.at_zero.values.to_vector() == b.at_zero.values.to_vector());
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

TEST_CASE("blocks match the same on both devices, in two passes",
          "[dsa::match_blocks][dsa::match_literally]") {
  for (const Sequence& s : sequences()) {
    for (const DsaConfig& config : matched_configs()) {
      check_matches(s, {.passes = 2}, config);
      if (small_tests() && config.metric == Metric::kEntropy) continue;
      // Around other places, with bins so narrow that many differences are beyond them.
      check_matches(s, {.passes = 2, .has_centres = true, .bin_shift = 0}, config);
    }
  }
}

TEST_CASE("blocks and windows of any size match the same on both devices") {
  const Sequence s = moving_pattern("large", sized<Vec3i>({270, 260, 1}, {110, 104, 1}), 12, 1);
  for (const bool literal : {false, true}) {
    DsaConfig config;
    config.literal = literal;
    for (const int block : {8, 17, 31, 64, 100, 255}) {
      if (block > s.size.x || (literal && small_tests() && block != 31)) continue;
      check_matches(s, {block, block == 8 ? 40 : block, block == 64 ? 3 : sized(5, 2)}, config);
    }
    // Too large for a multiprocessor: samples stay in the device's memory.
    if (!small_tests()) check_matches(s, {64, 200, 64}, config);
  }
}

/// The same frames without a saturated pixel: samples that all count are counted by other loops.
Sequence without_saturation(Sequence s) {
  const auto most = static_cast<uint16_t>((1 << s.stored.bits) - 2);
  for (auto* frames : {&s.mask, &s.frames}) {
    for (uint16_t& value : *frames) value = std::min(value, most);
  }
  return s;
}

TEST_CASE("blocks all of whose samples count match the same on both devices") {
  const Sequence s = without_saturation(
      moving_pattern("all count", sized<Vec3i>({200, 170, 1}, {72, 66, 1}), 12, sized(2, 1)));
  for (const DsaConfig& config : matched_configs()) check_matches(s, {.passes = 2}, config);
}

TEST_CASE("blocks below which a base field varies much match the same on both devices") {
  // In noise, small blocks find anything within the range, and the field between them is steep.
  if (small_tests()) return;
  Sequence s = moving_pattern("noise", {260, 260, 1}, 12, 1);
  uint64_t at = 0;
  for (auto* frames : {&s.mask, &s.frames}) {
    for (uint16_t& value : *frames) value = static_cast<uint16_t>(hash_below(5, 6, at++, 4000));
  }
  Matching what;
  what.block = what.step = 16;
  what.range = 40;
  what.passes = 2;
  DsaConfig config;
  check_matches(s, what, config);
}

}  // namespace
}  // namespace larch::dsa
