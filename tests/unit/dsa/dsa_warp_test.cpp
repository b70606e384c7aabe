// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/field/warp_math.h"
#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;
using fixtures::vector_of;

TEST_CASE("weights of the output's sampling sum to one") {
  for (const bool literal : {false, true}) {
    const WarpTable table = warp_taps(literal);
    for (const WarpTaps& taps : table.at) {
      CHECK(taps.w[0] + taps.w[1] + taps.w[2] + taps.w[3] == 1 << kWarpBits);
    }
    CHECK(table.at[0].w[1] == 1 << kWarpBits);
  }
  const WarpTaps half = warp_taps(false).at[kUnit / 2];
  CHECK(half.w[0] == -1024);
  CHECK(half.w[1] == 9216);
  CHECK(warp_taps(true).at[kUnit / 4].w[1] == 12288);
}

TEST_CASE("grey values are rounded to even halves and clipped") {
  const auto grey = [](int32_t difference, int32_t sign = 1) {
    return int{grey_value(difference, 0, sign, 6).value};
  };
  CHECK(grey(32) == 0);
  CHECK(grey(33) == 1);
  CHECK(grey(96) == 2);
  CHECK(grey(-32) == 0);
  CHECK(grey(-33) == -1);
  CHECK(grey(-96) == -2);
  CHECK(grey(96, -1) == -2);
  CHECK(grey_value(64, 32, 1, 6).value == 0);
  CHECK(grey_value(40000 * 64, 0, 1, 6).is_clipped);
  CHECK(grey_value(40000 * 64, 0, -1, 6).value == -32768);
}

namespace {

/// All that a frame becomes.
struct Subtracted {
  std::vector<int16_t> difference{};
  std::vector<uint8_t> validity{};
  std::vector<Vec3f> field_px{};
  SubtractFigures figures{};
};
Subtracted subtracted(SubtractJob job, const BlockGrid& grid, const SampleTable& table,
                      const DsaConfig& config, const Context& context) {
  const auto pixels = static_cast<size_t>(job.size.x * job.size.y);
  Subtracted out{
      std::vector<int16_t>(pixels), std::vector<uint8_t>(pixels), std::vector<Vec3f>(pixels), {}};
  job.frames = 1;
  job.out = out.difference.data();
  job.validity = out.validity.data();
  job.field_px = out.field_px.data();
  job.figures = &out.figures;
  subtract(job, grid, table, config, context);
  return out;
}

/// A mask and one contrast frame, subtracted as they are.
struct Pair {
  Vec3i size{64, 48, 1};
  SampleTable table{};
  std::vector<uint16_t> mask{}, contrast{};

  Subtracted subtract(const DsaConfig& config, const std::vector<Vec3i>& vectors,
                      const BlockGrid& grid, int threads = 1) const {
    Context context;
    context.threads = threads;
    SubtractJob job;
    job.mask_values = job.mask_samples = mask.data();
    job.contrast_values = job.contrast_samples = contrast.data();
    job.size = size;
    job.vectors = vectors.empty() ? nullptr : vectors.data();
    return subtracted(job, grid, table, config, context);
  }
};

Pair random_pair(uint64_t seed) {
  Pair pair;
  for (int64_t i = 0; i < int64_t{64} * 48; ++i) {
    pair.mask.push_back(static_cast<uint16_t>(4 * (1000 + 2000 * hash_unit(seed, 0, i))));
    pair.contrast.push_back(static_cast<uint16_t>(4 * (1000 + 2000 * hash_unit(seed, 1, i))));
  }
  return pair;
}

}  // namespace

TEST_CASE("whole-pixel motion moves the mask, and the edge is marked") {
  Pair pair = random_pair(4);
  const int32_t width = pair.size.x;
  for (int32_t y = 0; y < pair.size.y; ++y) {
    for (int32_t x = 0; x < width; ++x) {
      const int32_t from_x = std::clamp(x + 3, 0, width - 1);
      const int64_t from = int64_t{std::clamp(y - 2, 0, pair.size.y - 1)} * width + from_x;
      pair.contrast[static_cast<size_t>(int64_t{y} * width + x)] =
          pair.mask[static_cast<size_t>(from)];
    }
  }
  const BlockGrid grid = make_block_grid(pair.size, pair.size, pair.size);
  DsaConfig config;
  for (const bool literal : {false, true}) {
    config.literal = literal;
    const Subtracted out = pair.subtract(config, {vector_of(3, -2)}, grid, 2);
    for (const int16_t s : out.difference) REQUIRE(s == 0);
    const auto validity = out.validity;
    CHECK(validity[0] == static_cast<uint8_t>(Validity::kBeyondMask));
    CHECK(validity[2 * 64] == static_cast<uint8_t>(Validity::kValid));
    CHECK(validity[2 * 64 + 61] == static_cast<uint8_t>(Validity::kBeyondMask));
    CHECK(out.field_px[100].x == 3.0F);
    CHECK(out.figures.pixels[1] == 2 * 64 + 46 * 3);
  }
}

TEST_CASE("cubic sampling follows a parabola between pixels, linear sampling a line") {
  Pair pair;
  for (int32_t y = 0; y < 48; ++y) {
    for (int32_t x = 0; x < 64; ++x) {
      pair.mask.push_back(static_cast<uint16_t>(4 * (x * x + 2 * y * y)));
      pair.contrast.push_back(pair.mask.back());
    }
  }
  const BlockGrid grid = make_block_grid(pair.size, pair.size, pair.size);
  DsaConfig config;
  config.normalize = Normalize::kNone;
  const auto at = [&](bool literal, int32_t x, int32_t y) {
    config.literal = literal;
    return pair.subtract(config, {vector_of(0.5, -1.25)}, grid)
        .difference[static_cast<size_t>(int64_t{y} * 64 + x)];
  };
  const double exact = 30 * 30 + 2 * 20 * 20 - 30.5 * 30.5 - 2 * 18.75 * 18.75;
  CHECK(at(false, 30, 20) == Approx(exact).margin(0.6));
  CHECK(at(true, 30, 20) == Approx(exact - 0.25 - 2 * 0.1875).margin(0.6));
}

TEST_CASE("the mode of a frame is its background, whatever vessels and exposure do") {
  Pair pair;
  pair.size = {512, 512, 1};
  const auto noise = [](int64_t i) {
    double sum = 0;
    for (uint64_t k = 0; k < 12; ++k) sum += hash_unit(9, k, i);
    return 14 * (sum - 6);
  };
  for (int64_t i = 0; i < int64_t{512} * 512; ++i) {
    pair.mask.push_back(8000);
    const bool is_vessel = i % 512 < 100;
    pair.contrast.push_back(
        static_cast<uint16_t>(std::lround(8000 + 4 * (137.25 + noise(i) - (is_vessel ? 60 : 0)))));
  }
  const BlockGrid grid = make_block_grid(pair.size, pair.size, pair.size);
  const Subtracted out = pair.subtract({}, {}, grid);
  CHECK(out.figures.mode / 64.0 == Approx(137.25).margin(0.3));
  const Subtracted same = pair.subtract({}, {}, grid, 3);
  CHECK(same.difference == out.difference);
}

TEST_CASE("pixels that do not count are marked and leave the mode alone") {
  Pair pair = random_pair(5);
  std::vector<uint16_t> mask_samples = pair.mask, contrast_samples = pair.contrast;
  std::vector<uint8_t> region(pair.mask.size(), 1);
  mask_samples[10] = contrast_samples[500] = contrast_samples[20] = kNoSample;
  region[20] = region[21] = 0;
  const Context context;
  SubtractJob job;
  job.mask_values = pair.mask.data();
  job.mask_samples = mask_samples.data();
  job.contrast_values = pair.contrast.data();
  job.contrast_samples = contrast_samples.data();
  job.region = region.data();
  job.size = pair.size;
  const BlockGrid grid = make_block_grid(pair.size, pair.size, pair.size);
  const Subtracted out = subtracted(job, grid, pair.table, {}, context);
  const auto validity = out.validity;
  CHECK(validity[10] == static_cast<uint8_t>(Validity::kSaturated));
  CHECK(validity[500] == static_cast<uint8_t>(Validity::kSaturated));
  CHECK(validity[20] == static_cast<uint8_t>(Validity::kOutside));
  CHECK(out.figures.pixels[3] == 2);

  std::fill(contrast_samples.begin(), contrast_samples.end(), kNoSample);
  CHECK(subtracted(job, grid, pair.table, {}, context).figures.mode == 0);
}
