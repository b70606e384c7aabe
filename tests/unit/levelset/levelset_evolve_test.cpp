// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/unit/levelset/problems.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

/// One step of one voxel after the other, on an image that is no bricks.
Volume<float> plain_step(const Volume<float>& phi, const Volume<int16_t>& speed, const Step& step) {
  const Vec3i size = phi.size();
  Volume<float> after(phi.grid());
  for (int64_t i = 0; i < phi.voxels(); ++i) {
    const Vec3i at = phi.grid().voxel(i);
    const auto read = [&](int32_t x, int32_t y, int32_t z) {
      return phi({std::clamp(at.x + x, 0, size.x - 1), std::clamp(at.y + y, 0, size.y - 1),
                  std::clamp(at.z + z, 0, size.z - 1)});
    };
    Stencil<float> p{};
    p.centre = phi[i];
    p.xm = read(-1, 0, 0), p.xp = read(1, 0, 0), p.ym = read(0, -1, 0), p.yp = read(0, 1, 0);
    p.zm = read(0, 0, -1), p.zp = read(0, 0, 1);
    p.xm_ym = read(-1, -1, 0), p.xp_ym = read(1, -1, 0), p.xm_yp = read(-1, 1, 0);
    p.xp_yp = read(1, 1, 0), p.xm_zm = read(-1, 0, -1), p.xp_zm = read(1, 0, -1);
    p.xm_zp = read(-1, 0, 1), p.xp_zp = read(1, 0, 1), p.ym_zm = read(0, -1, -1);
    p.yp_zm = read(0, 1, -1), p.ym_zp = read(0, -1, 1), p.yp_zp = read(0, 1, 1);
    const float v = stepped(p, levelset::speed_of(speed[i]), 1.0F, step);
    after[i] = speed[i] == kFrozen ? p.centre : settle(p.centre, v, step);
  }
  return after;
}

/// D that varies smoothly, from waves drawn by hash.
Volume<int16_t> wavy_speed(const Grid& grid, uint64_t seed) {
  Vec3d k{0.15 + 0.4 * hash_unit(seed, 0, 0), 0.15 + 0.4 * hash_unit(seed, 0, 1),
          0.15 + 0.4 * hash_unit(seed, 0, 2)};
  return test::speed_of(grid, [&](const Vec3d& at) {
    return 0.2 + 0.9 * std::sin(k.x * at.x) * std::cos(k.y * at.y + 0.3 * k.z * at.z);
  });
}

/// The trackers by number, the list of voxels with either way against duplicates.
void set_tracker(Run& run, int way) {
  run.config.tracker = way == 0 ? Tracker::kDense : way == 3 ? Tracker::kBrick : Tracker::kVoxel;
  run.config.duplicates = way == 2 ? Duplicates::kBuffers : Duplicates::kStamps;
}

TEST_CASE("every tracker has the bits of a plain solver") {
  const auto a = GENERATE(0.0, 0.1, 0.5, 1.0);
  const auto size =
      GENERATE(Vec3i{24, 24, 24}, Vec3i{19, 30, 13}, Vec3i{7, 9, 1}, Vec3i{33, 1, 12});
  const Grid grid = levelset_grid(size, {1, 1.3, 1.7});
  // Balls around corners of bricks and of the image.
  const Volume<float> phi = volume_of<float>(grid, [&](const Vec3d& at) {
    return std::min(
        {norm(at) - 4.4, norm(at - Vec3d{15.5, 10, 13}) - 3, norm(at - Vec3d{23, 10, 9}) - 2.2});
  });
  const Volume<int16_t> speed = wavy_speed(grid, 7);
  const int way = GENERATE(0, 1, 2, 3);
  Run run;
  run.context.threads = 1 + way % 2;
  set_tracker(run, way);
  run.config.curvature_weight = a;
  run.config.allow_unstable = true;  // the dead zone with a = 1
  run.add(phi, speed);
  Volume<float> plain = phi;
  for (float& value : plain) value = held(value, run.fields[0].step);
  int64_t done = 0;
  for (const int64_t until : {1, 2, 3, 10, 50, 120}) {
    for (; done < until; ++done) plain = plain_step(plain, speed, run.fields[0].step);
    run.evolve(until - run.iterations());
    CAPTURE(a, size.x, size.y, size.z, way, until);
    if (run.job.progress[0].stop == Stop::kNone) {
      REQUIRE(run.job.progress[0].iterations == until);
    } else {
      REQUIRE(run.job.progress[0].stop == Stop::kAtRest);
    }
    REQUIRE(same_bits(run.phi(), plain));
  }
}

}  // namespace
