// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <tuple>

#include <catch2/catch.hpp>

#include "larch/levelset/step/step_lanes.h"
#include "larch/levelset/step/step_math.h"
#include "tests/unit/levelset/problems.h"

// That all trackers give what a plain solver gives, however the work is divided.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

/// A field on an image that is no bricks.
struct Plain {
  Volume<float> phi{};
  Volume<int16_t> speed{}, advection[3]{};

  VoxelSpeeds speeds() const {
    VoxelSpeeds all;
    all.speed = speed.data();
    for (int axis = 0; axis < 3; ++axis) {
      if (!advection[axis].empty()) all.advection[axis] = advection[axis].data();
    }
    return all;
  }
};

Stencil<float> plain_stencil(const Volume<float>& phi, const Vec3i& at) {
  const Vec3i size = phi.size();
  const auto read = [&](int32_t x, int32_t y, int32_t z) {
    return phi({std::clamp(at.x + x, 0, size.x - 1), std::clamp(at.y + y, 0, size.y - 1),
                std::clamp(at.z + z, 0, size.z - 1)});
  };
  Stencil<float> p{};
  p.centre = phi(at);
  p.xm = read(-1, 0, 0), p.xp = read(1, 0, 0), p.ym = read(0, -1, 0), p.yp = read(0, 1, 0);
  p.zm = read(0, 0, -1), p.zp = read(0, 0, 1);
  p.xm_ym = read(-1, -1, 0), p.xp_ym = read(1, -1, 0), p.xm_yp = read(-1, 1, 0);
  p.xp_yp = read(1, 1, 0), p.xm_zm = read(-1, 0, -1), p.xp_zm = read(1, 0, -1);
  p.xm_zp = read(-1, 0, 1), p.xp_zp = read(1, 0, 1), p.ym_zm = read(0, -1, -1);
  p.yp_zm = read(0, 1, -1), p.ym_zp = read(0, -1, 1), p.yp_zp = read(0, 1, 1);
  return p;
}

/// One step of all fields of a job, voxel after voxel.
void step_plainly(std::vector<Plain>& job, const levelset::Step& step) {
  std::vector<Volume<float>> after;
  for (size_t k = 0; k < job.size(); ++k) {
    after.emplace_back(job[k].phi.grid());
    for (int64_t i = 0; i < after[k].voxels(); ++i) {
      float least = 1e30F;
      for (size_t other = 0; other < job.size(); ++other) {
        if (other != k) least = std::min(least, job[other].phi[i]);
      }
      const auto p = plain_stencil(job[k].phi, job[k].phi.grid().voxel(i));
      after[k][i] = voxel_after(p, job[k].speeds(), i, job.size() > 1 ? &least : nullptr, step);
    }
  }
  for (size_t k = 0; k < job.size(); ++k) job[k].phi = std::move(after[k]);
}

/// D that varies smoothly, from waves drawn by hash.
Volume<int16_t> wavy_speed(const Grid& grid, uint64_t seed, double mean = 0.2) {
  const Vec3d k{0.15 + 0.4 * hash_unit(seed, 0, 0), 0.15 + 0.4 * hash_unit(seed, 0, 1),
                0.15 + 0.4 * hash_unit(seed, 0, 2)};
  return test::speed_of(grid, [&](const Vec3d& at) {
    return mean + 0.9 * std::sin(k.x * at.x) * std::cos(k.y * at.y + 0.3 * k.z * at.z);
  });
}

/// Balls around corners of bricks and of the image, and one drawn by hash.
Volume<float> balls(const Grid& grid, uint64_t seed) {
  const Vec3d drawn{grid.size.x * hash_unit(seed, 1, 0), grid.size.y * hash_unit(seed, 1, 1),
                    grid.size.z * hash_unit(seed, 1, 2)};
  return volume_of<float>(grid, [&](const Vec3d& at) {
    return std::min({norm(at) - 4.4, norm(at - Vec3d{15.5, 10, 13}) - 3,
                     norm(at - Vec3d{23, 10, 9}) - 2.2, norm(at - drawn) - 3.1});
  });
}

/// Adds the fields to a run, and holds them in [-c, c] as the run does.
void add_all(Run& run, std::vector<Plain>& fields) {
  for (Plain& field : fields) {
    run.add(field.phi, field.speed);
    LevelsetField& added = run.job.fields.back();
    for (int axis = 0; axis < 3; ++axis) {
      if (field.advection[axis].empty()) continue;
      added.advection[axis] = by_brick(field.advection[axis], run.context);
    }
    for (float& value : field.phi) value = held(value);
  }
}

/// Compares all trackers with the plain solver.
void check_against_plain(std::vector<Plain> fields, const std::vector<int64_t>& after,
                         const LevelsetConfig& config) {
  std::vector<Run> runs(kWays);
  for (int way = 0; way < kWays; ++way) {
    Run& run = runs[static_cast<size_t>(way)];
    run.config = config;
    run.context.threads = 1 + way % 2;
    set_tracker(run, way);
    add_all(run, fields);
  }
  int64_t done = 0;
  for (const int64_t until : after) {
    for (; done < until; ++done) step_plainly(fields, runs[0].job.fields[0].step);
    for (Run& run : runs) {
      run.evolve(until - run.iterations());
      CAPTURE(until, &run - runs.data());
      REQUIRE((run.stop() == Stop::kAtRest || run.iterations() == until));
      for (size_t k = 0; k < fields.size(); ++k) REQUIRE(same_bits(run.phi(k), fields[k].phi));
    }
  }
}

TEST_CASE("every tracker has the bits of a plain solver") {
  const auto a = GENERATE(0.0, 0.1, 0.5, 1.0);
  const auto size = GENERATE(Vec3i{24, 22, 17}, Vec3i{11, 9, 1}, Vec3i{33, 1, 12}, Vec3i{7, 1, 1},
                             Vec3i{1, 1, 1});
  const Grid grid = levelset_grid(size, {1, 1.3, 1.7});
  const auto seed = static_cast<uint64_t>(10 * a + size.x);
  std::vector<Plain> plain(1);
  plain[0].phi = balls(grid, seed);
  plain[0].speed = wavy_speed(grid, seed);
  LevelsetConfig config;
  config.curvature_weight = a;
  CAPTURE(a, size.x);
  check_against_plain(plain, {1, 2, 3, 10, 50, 200}, config);
}

TEST_CASE("with advection and frozen voxels too") {
  const Grid grid = levelset_grid({21, 18, 13});
  std::vector<Plain> plain(1);
  plain[0].phi = balls(grid, 3);
  plain[0].speed = wavy_speed(grid, 4);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    if (hash_unit(8, 0, static_cast<uint64_t>(i)) < 0.05) plain[0].speed[i] = kFrozen;
  }
  for (uint64_t axis = 0; axis < 3; ++axis) {
    plain[0].advection[axis] = wavy_speed(grid, 20 + axis, 0);
  }
  LevelsetConfig config;
  config.curvature_weight = 0.2;
  config.advection_weight = 0.3;
  config.time_step = 0.2;
  check_against_plain(plain, {1, 2, 10, 60}, config);
}

/// Three structures that overlap at first and grow into each other.
std::vector<Plain> three_structures(const Grid& grid) {
  std::vector<Plain> plain(3);
  const Vec3d centres[] = {{7, 10, 9}, {16, 12, 10}, {10, 18, 8}};
  for (size_t k = 0; k < 3; ++k) {
    plain[k].phi = sphere(grid, centres[k], 6);
    plain[k].speed = wavy_speed(grid, 30 + k, 0.5);
  }
  return plain;
}

TEST_CASE("every tracker has the bits of a plain solver with structures that push each other") {
  check_against_plain(three_structures(levelset_grid({24, 22, 14})), {1, 2, 3, 20, 100}, {});
}

TEST_CASE("structures of one image never overlap, and come to an end") {
  const Grid grid = levelset_grid({24, 22, 14});
  std::vector<Plain> plain = three_structures(grid);
  Run run;
  add_all(run, plain);
  while (run.stop() == Stop::kNone) {
    run.evolve(1);
    const Volume<float> phi[] = {run.phi(0), run.phi(1), run.phi(2)};
    for (int64_t i = 0; i < grid.voxels(); ++i) {
      const bool a = phi[0][i] < 0, b = phi[1][i] < 0, c = phi[2][i] < 0;
      if ((a && b) || (b && c) || (a && c)) FAIL("two structures at voxel " << i);
    }
  }
  CHECK(run.stop() != Stop::kIterations);
  for (size_t k = 0; k < 3; ++k) CHECK(run.job.inside[k] > 100);
}

bool same_count(const StepCount& a, const StepCount& b, bool with_active) {
  return a.changed == b.changed && a.flipped == b.flipped && a.grown == b.grown &&
         (a.active == b.active || !with_active);
}
bool same_history(const Run& a, const Run& b, bool with_active, size_t f = 0, size_t g = 0) {
  return std::equal(a.job.history[f].begin(), a.job.history[f].end(), b.job.history[g].begin(),
                    b.job.history[g].end(), [&](const StepCount& x, const StepCount& y) {
                      return same_count(x, y, with_active);
                    });
}

Run small_run(int way, int threads = 1) {
  const Grid grid = levelset_grid({30, 27, 25});
  Run run;
  run.context.threads = threads;
  set_tracker(run, way);
  run.add(balls(grid, 5), wavy_speed(grid, 6));
  return run;
}

TEST_CASE("histories and stops agree between trackers; at rest both buffers are the same") {
  Run voxels = small_run(0), bricks = small_run(1);
  for (Run* run : {&voxels, &bricks}) {
    run->evolve(5000);
    CHECK(run->stop() == Stop::kAtRest);
    CHECK(same_bits(run->other_buffer(), run->phi()));
    CHECK(run->job.inside[0] == voxels_inside(run->phi()));
    CHECK(run->job.active[0].empty());
  }
  CHECK(same_history(voxels, bricks, false));
  CHECK(same_bits(voxels.phi(), bricks.phi()));
}

TEST_CASE("threads and the division into calls change nothing") {
  const int way = GENERATE(range(0, kWays));
  Run whole = small_run(way);
  whole.evolve(90);
  for (const int threads : {1, 2, 3, 8}) {
    Run run = small_run(way, threads);
    for (const int64_t steps : {1, 2, 40, 0, 47}) run.evolve(steps);
    CHECK(same_bits(run.phi(), whole.phi()));
    CHECK(same_bits(run.other_buffer(), whole.other_buffer()));
    CHECK(same_history(run, whole, true));
    CHECK(run.job.active[0] == whole.job.active[0]);
    CHECK(run.job.is_active_known);
  }
}

TEST_CASE("both instruction sets give the same bits") {
  using namespace levelset::cpu;
  Run run;
  const Grid grid = levelset_grid({30, 27, 25});
  run.add(sphere(grid, {12, 12, 12}, 3.5), wavy_speed(grid, 6));
  for (int axis = 0; axis < 3; ++axis) {
    run.job.fields[0].advection[axis] = by_brick(wavy_speed(run.grid, 9), run.context);
  }
  run.job.fields[0].step.advection = 0.4F;
  const float* all = run.job.fields[0].phi[0].data();
  for (const StepLanes& lanes : all_step_lanes()) {
    CAPTURE(lanes.name);
    for (const int32_t width : {8, 5, 3}) {
      // The second brick along each axis, with neighbours on all sides.
      const BrickLayout& layout = run.job.fields[0].layout;
      const int64_t begin = layout.brick_of({1, 1, 1}) * kBrickVoxels;
      BrickStep brick;
      brick.step = &run.job.fields[0].step;
      for (int32_t i = 0; i < kHalo; ++i) {
        brick.halo.y[i] = layout.offset({8, 7 + i, 8}) - begin;
        brick.halo.z[i] = layout.offset({8, 8, 7 + i}) - begin;
      }
      brick.halo.left = kBrick - 1 - kBrickVoxels;
      brick.halo.right = width == kBrick ? kBrickVoxels : width - 1;
      brick.halo.width = width;
      brick.rows = 0x123456789abcdef1;
      brick.before = all + begin;
      brick.speed = run.job.fields[0].speed.data() + begin;
      for (int axis = 0; axis < 3; ++axis) {
        brick.advection[axis] = run.job.fields[0].advection[axis].data() + begin;
      }
      brick.others = &all;
      brick.other_count = 1;
      brick.begin = begin;
      std::vector<float> after(kBrickVoxels), wanted(kBrickVoxels);
      BrickChange change, wanted_change;
      brick.after = after.data();
      lanes.step_brick(brick, change);
      brick.after = wanted.data();
      kPortableStepLanes.step_brick(brick, wanted_change);
      for (int32_t i = 0; i < kBrickVoxels; ++i) {
        if (i % kBrick >= width) continue;
        REQUIRE(after[static_cast<size_t>(i)] == wanted[static_cast<size_t>(i)]);
      }
      CHECK(change.changed > 0);
      CHECK(std::tie(change.rows, change.first, change.last, change.changed, change.flipped,
                     change.grown) == std::tie(wanted_change.rows, wanted_change.first,
                                               wanted_change.last, wanted_change.changed,
                                               wanted_change.flipped, wanted_change.grown));
    }
  }
}

TEST_CASE("a run that is interrupted goes on where it was") {
  const int way = GENERATE(range(0, kWays));
  Run run = small_run(way), whole = small_run(way);
  whole.evolve(20);
  run.evolve(9);
  std::atomic<int> stop{143};
  run.context.stop = &stop;
  run.evolve(11);
  CHECK(run.stop() == Stop::kNone);
  CHECK(run.iterations() == 9);
  stop = 0;
  run.evolve(11);
  CHECK(run.stop() == Stop::kNone);
  CHECK(same_bits(run.phi(), whole.phi()));
}

TEST_CASE("new speeds with a set that is not known give what every voxel gives") {
  const int way = GENERATE(range(0, kWays));
  Run run = small_run(way);
  const LevelsetField& field = run.job.fields[0];
  std::vector<Plain> plain(1);
  plain[0].phi = phi_volume(field, 0, run.grid, run.context);
  plain[0].speed = stored_volume(field, field.speed, run.grid, run.context);
  for (uint64_t i = 0; i < 6; ++i) {
    run.evolve(13);
    for (int step = 0; step < 13; ++step) step_plainly(plain, field.step);
    CHECK(same_bits(run.phi(), plain[0].phi));
    plain[0].speed = wavy_speed(run.grid, 40 + i, -0.3);
    run.job.fields[0].speed = by_brick(plain[0].speed, run.context);
    run.job.is_active_known = false;
  }
  CHECK(run.job.inside[0] == voxels_inside(run.phi()));
}

TEST_CASE("where nothing moves a field, it is at rest at once or after one step") {
  const int way = GENERATE(range(0, kWays));
  const Grid grid = levelset_grid({12, 10, 9});
  Run still;
  set_tracker(still, way);
  still.config.curvature_weight = 0;
  still.add(sphere(grid, middle_mm(grid), 3), test::speed_of(grid, [](const Vec3d&) { return 0; }));
  const auto before = phi_volume(still.job.fields[0], 0, grid, still.context);
  still.evolve(10);
  CHECK(still.stop() == Stop::kAtRest);
  CHECK(still.iterations() == 1);
  CHECK(same_bits(still.phi(), before));
  Run full;
  set_tracker(full, way);
  full.add(Volume<float>(grid, -5), test::speed_of(grid, [](const Vec3d&) { return 1; }));
  full.evolve(10);
  CHECK(full.stop() == Stop::kAtRest);
  CHECK(full.iterations() == 0);
  CHECK(full.job.inside[0] == grid.voxels());
}

TEST_CASE("each rule stops a run at the step that the history says") {
  const int way = GENERATE(range(0, kWays));
  Run free = small_run(way);
  free.job.stops.unchanged_labels = 0;
  free.evolve(5000);
  const auto run_with = [&](auto set) {
    Run run = small_run(way);
    run.job.stops.unchanged_labels = 0;
    set(run.job.stops);
    run.evolve(5000);
    return run;
  };
  const auto limited = run_with([](StopRules& rules) { rules.max_iterations = 17; });
  CHECK(limited.stop() == Stop::kIterations);
  CHECK(limited.iterations() == 17);

  const auto calm = run_with([](StopRules& rules) { rules.unchanged_labels = 7; });
  CHECK(calm.stop() == Stop::kLabels);
  for (size_t i = 1; i <= 7; ++i) {
    CHECK(calm.job.history[0][calm.job.history[0].size() - i].flipped == 0);
  }
  CHECK(calm.job.history[0][calm.job.history[0].size() - 8].flipped > 0);

  const int64_t volume = free.job.inside[0] * 3 / 4;
  const auto large = run_with([&](StopRules& rules) { rules.most_voxels = volume; });
  CHECK(large.stop() == Stop::kVolume);
  CHECK(large.job.inside[0] > volume);
  CHECK(large.job.inside[0] - large.job.history[0].back().grown <= volume);
}

}  // namespace
