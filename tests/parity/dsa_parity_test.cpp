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
using test::Matching;
using test::moving_pattern;
using test::name_of;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::sequences;
using test::shifts_of;

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

TEST_CASE("blocks match the same on both devices: borders, overflow and a second pass") {
  for (const Sequence& s : sequences()) {
    for (const Overflow overflow : {Overflow::kWrap, Overflow::kDiscard, Overflow::kClamp}) {
      for (const Border border : {Border::kValid, Border::kClamp}) {
        if (small_tests() && (border == Border::kValid) != (s.stored.bits == 8)) continue;
        DsaConfig config;
        config.overflow = overflow;
        config.border = border;
        config.bin_width = 0.25;  // so that there is overflow
        Matching what;
        what.has_centres = border == Border::kClamp;
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
  const Sequence s = moving_pattern("large", sized<Vec3i>({270, 260, 1}, {110, 104, 1}), 12, 1);
  DsaConfig config;
  for (const int block : {8, 17, 31, 64, 100, 255}) {
    if (block > s.size.x) continue;
    check_matches(s, {block, block == 8 ? 40 : block, block == 64 ? 3 : sized(5, 2)}, config);
  }
  if (small_tests()) return;
  // Too large for a multiprocessor: samples stay in the device's memory.
  check_matches(s, {64, 200, 64}, config);
  config.search = Search::kCds;
  check_matches(s, {255, 255, 64}, config);
  check_matches(s, {64, 64, 64}, config);
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
  for (const Border border : {Border::kValid, Border::kClamp}) {
    for (const Overflow overflow : {Overflow::kWrap, Overflow::kClamp}) {
      for (const auto& metric : enum_names(static_cast<Metric*>(nullptr))) {
        if (small_tests() && border == Border::kValid && overflow == Overflow::kClamp) continue;
        DsaConfig config;
        config.border = border;
        config.overflow = overflow;
        config.metric = metric.value;
        Matching what;
        what.passes = 2;
        check_matches(s, what, config);
        if (small_tests()) continue;
        config.search = Search::kCds;
        for (const SubPixel subpixel : {SubPixel::kGain, SubPixel::kLinear, SubPixel::kNone}) {
          config.subsearch = SubSearch::kCds;
          config.subpixel = subpixel;
          config.rounds = subpixel == SubPixel::kGain ? 4 : 1;
          check_matches(s, what, config);
        }
      }
    }
  }
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
