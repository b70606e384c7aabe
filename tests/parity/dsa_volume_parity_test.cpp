// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/dsa/sequence.h"
#include "tests/parity/dsa_matching.h"

namespace larch::dsa {
namespace {

using larch::test::cuda_context;
using larch::test::sized;
using larch::test::small_tests;
using test::check_matches;
using test::cpu_context;
using test::Matching;
using test::moving_volume;
using test::name_of;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::shifts_of;

/// The usual blocks, 16 voxels a side.
Matching usual_blocks() {
  return {.block = 16, .step = 16, .range = small_tests() ? 1 : 3};
}

TEST_CASE("samples and bin widths of volumes are the same on both devices") {
  for (const Vec3i& size : {Vec3i{52, 47, 41}, Vec3i{33, 9, 21}}) {
    const Sequence s = moving_volume("volume", size, 12, 2);
    for (const Border border : {Border::kValid, Border::kClamp}) {
      DsaConfig config;
      config.border = border;
      const Prepared a = prepare(s, config, cpu_context());
      const Prepared b = prepare(s, config, cuda_context());
      const std::vector<Vec3i> centres(2, Vec3i{-3, 2, 4});
      CAPTURE(size.x, name_of(border));
      CHECK(a.frames.values.to_vector() == b.frames.values.to_vector());
      CHECK(a.at_zero.values.to_vector() == b.at_zero.values.to_vector());
      CHECK(shifts_of(a, config, cpu_context(), centres) ==
            shifts_of(b, config, cuda_context(), centres));
    }
  }
}

TEST_CASE("blocks of volumes match the same on both devices: metrics, searches and samplings",
          "[dsa::match_volume]") {
  const Sequence s =
      moving_volume("volume", sized<Vec3i>({52, 47, 41}, {34, 18, 17}), 12, sized(2, 1));
  for (const auto& metric : enum_names(static_cast<Metric*>(nullptr))) {
    for (const auto& search : enum_names(static_cast<Search*>(nullptr))) {
      for (const auto& subpixel : enum_names(static_cast<SubPixel*>(nullptr))) {
        for (const SubSearch subsearch : {SubSearch::kFit, SubSearch::kCds}) {
          if (small_tests() && subsearch != SubSearch::kFit) continue;
          DsaConfig config;
          config.metric = metric.value;
          config.search = search.value;
          config.subpixel = subpixel.value;
          config.subsearch = subsearch;
          check_matches(s, usual_blocks(), config);
        }
      }
    }
  }
}

TEST_CASE("blocks of volumes match the same: borders, overflow and a second pass") {
  const Vec3i size = small_tests() ? Vec3i{21, 17, 18} : Vec3i{41, 36, 39};
  const Sequence s = moving_volume("volume", size, 14, 2);
  for (const Overflow overflow : {Overflow::kWrap, Overflow::kDiscard, Overflow::kClamp}) {
    for (const Border border : {Border::kValid, Border::kClamp}) {
      if (small_tests() && (border == Border::kValid) != (overflow == Overflow::kWrap)) continue;
      DsaConfig config;
      config.overflow = overflow;
      config.border = border;
      config.bin_width = 0.25;  // so that there is overflow
      config.border_field = border == Border::kClamp ? BorderField::kLinear : BorderField::kZero;
      Matching what = usual_blocks();
      what.has_centres = border == Border::kClamp;
      what.passes = 2;
      check_matches(s, what, config);
      config.search = Search::kCds;
      config.subpixel = overflow == Overflow::kClamp ? SubPixel::kLinear : SubPixel::kNone;
      check_matches(s, what, config);
    }
  }
}

TEST_CASE("blocks and windows of volumes of any size match the same") {
  const Sequence s = moving_volume("volume", sized<Vec3i>({61, 50, 44}, {29, 25, 22}), 8, 1);
  for (const int block : {8, 9, 16, 23, 40}) {
    if (block > s.size.x) continue;
    check_matches(s, {block, block, block == 16 ? sized(10, 3) : sized(2, 1)}, {});
  }
  // Fewer voxels than a block along some axes; rows of more than 64.
  check_matches(moving_volume("flat", {150, 37, 2}, 12, 1), {100, 70, sized(3, 1)}, {});
  check_matches(moving_volume("thin", {5, 37, 40}, 12, 1), {16, 16, sized(4, 2)}, {});
  if (small_tests()) return;
  // Planes of the mask that do not fit on chip.
  check_matches(moving_volume("far", {48, 40, 3}, 12, 1), {40, 40, 40}, {});
}

TEST_CASE("volumes are registered and subtracted the same on both devices") {
  const Sequence s = moving_volume("volume", sized<Vec3i>({48, 40, 36}, {33, 33, 20}), 12, 1);
  for (const bool has_passes : {false, true}) {
    const auto subtracted = [&](const Context& context) {
      DsaConfig config = searched_config({}, /*is_volume=*/true);
      config.passes = "16/16";
      config.range = sized(4, 2);
      if (has_passes) config.passes = "16/16,12/8";
      const MaskInput input{s.size, {s.mask}, make_sample_table(s.stored, config), s.region, {}};
      return subtract_frames(make_mask(input, config, context), s.frames, config,
                             {true, false, true}, context);
    };
    const SubtractedFrames a = subtracted(cpu_context()), b = subtracted(cuda_context());
    CHECK(a.difference == b.difference);
    CHECK(a.uncorrected == b.uncorrected);
    CHECK(a.validity == b.validity);
    CHECK(a.vectors == b.vectors);
    CHECK(a.field_px == b.field_px);
    CHECK(test::first_difference(a.matches, b.matches) == -1);
    const auto is_found = [](const BlockMatch& m) { return (m.flags & kBlockUnreliable) == 0; };
    CHECK(std::count_if(b.matches.begin(), b.matches.end(), is_found) > sized(10, 0));
  }
}

/// A volume without noise whose content moves by -d; see moving_volume for the pattern.
std::vector<uint16_t> still_volume(const Vec3i& size, const Vec3i& d) {
  std::vector<uint16_t> out;
  for (int z = d.z; z < size.z + d.z; ++z) {
    for (int y = d.y; y < size.y + d.y; ++y) {
      for (int x = d.x; x < size.x + d.x; ++x) {
        const double value = 2000 + 300 * std::sin(x / 2.9 + y / 7.7) +
                             300 * std::sin(y / 3.1 - z / 9.2) + 300 * std::sin(z / 2.7 + x / 8.3);
        out.push_back(static_cast<uint16_t>(std::lround(value)));
      }
    }
  }
  return out;
}

TEST_CASE("a translation of a volume by whole voxels is found exactly on the device") {
  const Vec3i size{64, 64, 64};
  DsaConfig config = searched_config({}, /*is_volume=*/true);
  config.passes = "16/16";
  config.subpixel = SubPixel::kNone;
  const auto mask = still_volume(size, {}), fill = still_volume(size, {2, -1, 3});
  const MaskInput input{size, {mask}, make_sample_table({}, config), {}, {}};
  const Context context = cuda_context();
  const SubtractedFrames out =
      subtract_frames(make_mask(input, config, context), fill, config, {}, context);
  REQUIRE(out.matches.size() == 64);
  for (const BlockMatch& match : out.matches) {
    const Vec3i true_q16{2 << 16, -1 * (1 << 16), 3 << 16};
    CHECK(match.found == true_q16);
    CHECK(norm((match.vector - true_q16).cast<double>()) < 65);  // 0.001 voxel
    CHECK(match.evaluations == 9261);
  }
}

}  // namespace
}  // namespace larch::dsa
