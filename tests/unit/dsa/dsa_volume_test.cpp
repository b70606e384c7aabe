// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/sequence.h"

namespace {

using namespace larch;
using namespace larch::dsa;

/// A smooth body with structure in all directions, displaced by d, with noise.
std::vector<uint16_t> volume_of(const Vec3i& size, const Vec3d& d, double noise = 0,
                                uint64_t stream = 0) {
  std::vector<uint16_t> out;
  int64_t i = 0;
  for (int32_t z = 0; z < size.z; ++z) {
    for (int32_t y = 0; y < size.y; ++y) {
      for (int32_t x = 0; x < size.x; ++x, ++i) {
        const double u = x + d.x, v = y + d.y, w = z + d.z;
        double value = 2000 + 300 * std::sin(u / 2.9 + v / 7.7) +
                       300 * std::sin(v / 3.1 - w / 9.2) + 300 * std::sin(w / 2.7 + u / 8.3);
        for (uint64_t k = 0; noise > 0 && k < 4; ++k) {
          value += noise * (hash_unit(5, 10 * stream + k, i) - 0.5);
        }
        out.push_back(static_cast<uint16_t>(std::lround(value)));
      }
    }
  }
  return out;
}

DsaConfig volume_config() {
  DsaConfig config;
  config.range = 4;
  return config;
}

SubtractedFrames subtracted(const Vec3i& size, const std::vector<uint16_t>& mask,
                            const std::vector<uint16_t>& fill, const DsaConfig& config,
                            int threads = 1) {
  Context context;
  context.threads = threads;
  const MaskInput input{
      size, {mask}, make_sample_table({12, false, true, Domain::kAuto}, config), {}, {}};
  return subtract_frames(make_mask(input, config, context), fill, config, {true, false, true},
                         context);
}

}  // namespace

TEST_CASE("a translation of a volume by whole voxels is found exactly") {
  const Vec3i size{64, 64, 64};
  const auto mask = volume_of(size, {});
  for (const bool literal : {false, true}) {
    for (const Metric metric : {Metric::kEhd, Metric::kEntropy}) {
      // One round from zero finds what lies along one axis.
      const Vec3i moved = literal ? Vec3i{0, 1, 0} : Vec3i{2, -1, 3};
      const auto fill = volume_of(size, moved.cast<double>());
      DsaConfig config = volume_config();
      config.literal = literal;
      config.metric = metric;
      const SubtractedFrames out = subtracted(size, mask, fill, config, 2);
      REQUIRE(out.matches.size() == 64);
      int exact = 0;
      for (const BlockMatch& m : out.matches) {
        const Vec3i true_q16 = moved * (1 << 16);
        if (m.found == true_q16) ++exact;
        if (!literal) CHECK(norm((m.vector - true_q16).cast<double>()) < 65);
        if (!literal && (m.flags & kBlockReplaced) == 0) {
          CHECK(m.best.count >= m.counted / 2);
          // Without noise all differences are one: EHD 1.
          CHECK(m.best.sum ==
                (metric == Metric::kEhd ? uint64_t{m.best.count} * m.best.count : m.best.sum));
        }
      }
      INFO("literal " << literal << " metric " << static_cast<int>(metric));
      CHECK(exact >= (literal ? 48 : 64));
      if (!literal) {
        for (size_t i = 0; i < out.difference.size(); ++i) {
          if (out.validity[i] == 0) REQUIRE(std::abs(out.difference[i]) <= 1);
        }
      }
    }
  }
}

TEST_CASE("motion of a volume between voxels, with noise; the same for any number of threads") {
  const Vec3i size{48, 40, 36};
  const auto mask = volume_of(size, {}, 60, 1), fill = volume_of(size, {1.4, -0.7, 2.3}, 60, 2);
  DsaConfig config = volume_config();
  config.range = 3;
  const SubtractedFrames out = subtracted(size, mask, fill, config, 1);
  const BlockGrid grid = last_grid(config, size);
  CHECK(grid.count == Vec3i{3, 3, 3});
  Vec3d worst{};
  for (const BlockMatch& m : out.matches) {
    if ((m.flags & kBlockReplaced) != 0) continue;
    const Vec3d v = m.vector.cast<double>() / 65536.0;
    worst.x = std::max(worst.x, std::fabs(v.x - 1.4));
    worst.y = std::max(worst.y, std::fabs(v.y + 0.7));
    worst.z = std::max(worst.z, std::fabs(v.z - 2.3));
  }
  CHECK(worst.x < 0.25);
  CHECK(worst.y < 0.25);
  CHECK(worst.z < 0.25);
  const auto centre = static_cast<size_t>((18 * 40 + 20) * 48 + 24);
  CHECK(norm(out.field_px[centre] - Vec3f{1.4F, -0.7F, 2.3F}) < 0.25F);
  const auto spread = [&](const std::vector<int16_t>& s) {
    double sum = 0;
    for (size_t i = 0; i < s.size(); ++i) sum += out.validity[i] == 0 ? double{1} * s[i] * s[i] : 0;
    return std::sqrt(sum);
  };
  CHECK(spread(out.difference) < 0.3 * spread(out.uncorrected));

  const SubtractedFrames again = subtracted(size, mask, fill, config, 3);
  CHECK(again.difference == out.difference);
  CHECK(again.vectors == out.vectors);
  CHECK(again.matches.size() == out.matches.size());

  DsaConfig two = config;
  two.passes = "16/16,12/8";
  const SubtractedFrames refined = subtracted(size, mask, fill, two, 2);
  CHECK(norm(refined.field_px[centre] - Vec3f{1.4F, -0.7F, 2.3F}) < 0.2F);
}
