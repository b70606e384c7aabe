// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/parity/cuda_context.h"
#include "tests/unit/levelset/problems.h"

namespace larch::levelset {
namespace {

using larch::test::cpu_context;
using larch::test::cuda_context;
using larch::test::levelset_grid;
using larch::test::Run;
using larch::test::same_bits;
using larch::test::small_tests;
using larch::test::speed_of;
using larch::test::sphere;
using larch::test::volume_of;

/// What is moved. Waves of speed that differ by field, noise, and spheres in corners of the image
/// and of bricks.
struct Scene {
  Vec3i size{37, 29, 21};
  Vec3d spacing_mm{1, 1, 1};
  int fields = 1;
  bool has_edges = false;
  bool is_frozen = false;  ///< some voxels
};

Volume<int16_t> waves(const Scene& scene, int field) {
  const Grid grid = levelset_grid(scene.size, scene.spacing_mm);
  Volume<int16_t> speed = speed_of(grid, [&](const Vec3d& at) {
    return 0.5 * std::sin(0.31 * at.x + field) * std::cos(0.2 * at.y + 0.11 * at.z) + 0.35 -
           0.1 * field;
  });
  for (int64_t i = 0; i < speed.voxels(); ++i) {
    const double noise =
        larch::hash_unit(3, static_cast<uint64_t>(field), static_cast<uint64_t>(i));
    speed[i] = static_cast<int16_t>(speed[i] + static_cast<int16_t>(2000 * (noise - 0.5)));
    if (scene.is_frozen && i % 11 == 3) speed[i] = kFrozen;
  }
  return speed;
}

Volume<float> seeds(const Scene& scene, int field) {
  const Grid grid = levelset_grid(scene.size, scene.spacing_mm);
  const Vec3d far = {(scene.size.x - 1) * scene.spacing_mm.x,
                     (scene.size.y - 1) * scene.spacing_mm.y,
                     (scene.size.z - 1) * scene.spacing_mm.z};
  const std::vector<Vec3d> centres = {{0, 0, 0}, {15.5, 7.5, 8}, far, {24, 16, 7}};
  Volume<float> phi(grid, 100.0F);
  for (size_t c = 0; c < centres.size(); ++c) {
    if (static_cast<int>(c) % 2 != field % 2) continue;
    const Volume<float> one = sphere(grid, centres[c], 3.2 + field);
    for (int64_t i = 0; i < phi.voxels(); ++i) phi[i] = std::min(phi[i], one[i]);
  }
  return phi;
}

Buffer<int16_t> edges(const Scene& scene, int number, const Context& context) {
  const Grid grid = levelset_grid(scene.size);
  return by_brick(
      speed_of(grid,
               [&](const Vec3d& at) { return 0.3 * std::sin(0.4 * at.x + 0.3 * at.y + number); }),
      context);
}

struct Way {
  Tracker tracker = Tracker::kBrick;
  int32_t most_blocks = 0;
};
const std::vector<Way> kWays = {{Tracker::kBrick}, {Tracker::kBuffers}};
std::string name_of(const Way& way) {
  return way.tracker == Tracker::kBrick ? "bricks" : "buffers";
}

Run make_run(const Scene& scene, const LevelsetConfig& config, const StopRules& rules,
             const Way& way, const Context& context) {
  Run run;
  run.context = context;
  run.config = config;
  run.config.tracker = way.tracker;
  run.job.stops = rules;
  run.job.most_blocks = way.most_blocks;
  for (int f = 0; f < scene.fields; ++f) {
    run.add(seeds(scene, f), waves(scene, f));
    if (!scene.has_edges) continue;
    for (int axis = 0; axis < 3; ++axis) {
      run.job.fields.back().advection[axis] = edges(scene, 1 + axis, context);
    }
  }
  return run;
}

void check_same(const Run& a, const Run& b) {
  REQUIRE(a.job.fields.size() == b.job.fields.size());
  CAPTURE(a.iterations());
  REQUIRE(a.iterations() == b.iterations());
  CHECK(a.job.progress.quiet == b.job.progress.quiet);
  CHECK(static_cast<int>(a.stop()) == static_cast<int>(b.stop()));
  CHECK(a.job.inside == b.job.inside);
  CHECK(a.job.is_active_known == b.job.is_active_known);
  CHECK(a.job.active == b.job.active);
  for (size_t f = 0; f < a.job.fields.size(); ++f) {
    CAPTURE(f);
    REQUIRE(same_bits(a.phi(f), b.phi(f)));
    CHECK(same_bits(a.other_buffer(f), b.other_buffer(f)));
    const auto &h = a.job.history[f], &k = b.job.history[f];
    REQUIRE(h.size() == k.size());
    for (size_t s = 0; s < h.size(); ++s) {
      CAPTURE(s);
      REQUIRE(h[s].changed == k[s].changed);
      REQUIRE(h[s].flipped == k[s].flipped);
      REQUIRE(h[s].grown == k[s].grown);
      REQUIRE(h[s].active == k[s].active);
    }
  }
}

/// Runs a scene in every way on the device and compares it with the CPU after each of `calls`.
void check_ways(const Scene& scene, const LevelsetConfig& config, const std::vector<int64_t>& calls,
                const StopRules& rules = {}, const std::vector<Way>& ways = kWays) {
  for (const Way& way : ways) {
    CAPTURE(name_of(way), way.most_blocks, config.curvature_weight);
    Run a = make_run(scene, config, rules, way, cpu_context());
    Run b = make_run(scene, config, rules, way, cuda_context());
    for (const int64_t steps : calls) {
      a.evolve(steps);
      b.evolve(steps);
      check_same(a, b);
    }
  }
}

LevelsetConfig with_weight(double curvature_weight) {
  LevelsetConfig config;
  config.curvature_weight = curvature_weight;
  return config;
}

TEST_CASE("level sets move the same on both devices, with every tracker",
          "[levelset::evolve_buffers][levelset::evolve_bricks]") {
  const std::vector<int64_t> calls =
      small_tests() ? std::vector<int64_t>{1, 2, 5} : std::vector<int64_t>{1, 1, 1, 7, 40, 150};
  for (const double weight : {0.0, 0.1, 0.5, 1.0}) {
    check_ways({}, with_weight(weight), calls);
    if (small_tests() && weight > 0) break;
  }
}

TEST_CASE("level sets of any size and spacing move the same on both devices") {
  const int64_t steps = small_tests() ? 3 : 60;
  check_ways({.size = {45, 33, 1}}, with_weight(0.2), {1, steps});
  check_ways({.size = {7, 5, 3}}, with_weight(0.2), {1, steps});
  check_ways({.size = {1, 1, 9}}, with_weight(0.2), {1, steps});
  check_ways({.size = {24, 16, 32}, .spacing_mm = {1, 1.5, 2.5}}, with_weight(0.3), {steps});
  if (small_tests()) return;
  check_ways({.size = {64, 65, 63}}, with_weight(0.03), {300});
}

TEST_CASE("level sets with frozen voxels and advection move the same on both devices") {
  LevelsetConfig config = with_weight(0.2);
  config.advection_weight = 0.3;
  config.time_step = 0.15;
  const std::vector<int64_t> calls = {2, small_tests() ? 3 : 80};
  check_ways({.is_frozen = true}, config, calls);
  check_ways({.has_edges = true}, config, calls);
  check_ways({.has_edges = true, .is_frozen = true}, config, calls);
}

TEST_CASE("labels of one image move the same on both devices") {
  const std::vector<int64_t> calls = {2, small_tests() ? 2 : 120};
  check_ways({.fields = 3}, with_weight(0.1), calls);
  check_ways({.fields = 2, .has_edges = true, .is_frozen = true}, with_weight(0.3), calls);
  if (small_tests()) return;
  check_ways({.size = {12, 9, 10}, .fields = 70}, with_weight(0.1), {5, 20});
}

TEST_CASE("level sets stop by the same rules after the same step on both devices") {
  const Scene scene{.size = small_tests() ? Vec3i{20, 18, 17} : Vec3i{37, 29, 21}};
  const int64_t most = small_tests() ? 12 : 2500;
  const auto check = [&](const StopRules& rules, Stop stop) {
    check_ways(scene, with_weight(0.1), {7, most}, rules);
    if (small_tests()) return;
    Run run = make_run(scene, with_weight(0.1), rules, {}, cuda_context());
    run.evolve(most);
    CHECK(static_cast<int>(run.job.progress.stop) == static_cast<int>(stop));
  };
  StopRules none;
  none.unchanged_labels = 0;
  StopRules rules = none;
  rules.max_iterations = 11;
  check(rules, Stop::kIterations);
  rules = none;
  rules.unchanged_labels = 15;
  check(rules, Stop::kLabels);
  rules = none;
  rules.most_voxels = 1500;
  check(rules, Stop::kVolume);
}

TEST_CASE("level sets with nothing to do stop before or after one step on both devices") {
  for (const Way& way : kWays) {
    CAPTURE(name_of(way));
    const Grid grid = levelset_grid({19, 12, 9});
    std::vector<Run> full, still;
    for (const Context& context : {cpu_context(), cuda_context()}) {
      full.push_back(make_run({.fields = 0}, with_weight(0), {}, way, context));
      full.back().add(Volume<float>(grid, -2.0F), Volume<int16_t>(grid, kSpeedOne));
      full.back().evolve(50);
      CHECK(full.back().iterations() == 0);
      still.push_back(make_run({.fields = 0}, with_weight(0), {}, way, context));
      still.back().add(sphere(grid, {9, 6, 4}, 3), Volume<int16_t>(grid, 0));
      still.back().evolve(50);
      CHECK(still.back().iterations() == 1);
      CHECK(static_cast<int>(still.back().stop()) == static_cast<int>(Stop::kAtRest));
    }
    check_same(full[0], full[1]);
    check_same(still[0], still[1]);
  }
}

TEST_CASE("launches of every shape and every time give the same bytes") {
  const Scene scene{.size = small_tests() ? Vec3i{20, 18, 17} : Vec3i{61, 50, 44}};
  const int64_t steps = small_tests() ? 6 : 150;
  for (const Way& way : kWays) {
    Run first = make_run(scene, with_weight(0.1), {}, way, cuda_context());
    first.evolve(steps);
    for (const int32_t blocks : {1, 5, 66, 132, 0}) {
      for (int repeat = 0; repeat < (small_tests() ? 1 : 4); ++repeat) {
        Run other = make_run(scene, with_weight(0.1), {}, {way.tracker, blocks}, cuda_context());
        other.evolve(steps);
        CAPTURE(name_of(way), blocks, repeat);
        check_same(first, other);
      }
    }
  }
}

TEST_CASE("bricks that are read whole and others move the same on both devices") {
  // A ball that grows from one brick to all, and one that shrinks from many to none.
  const Vec3i size = small_tests() ? Vec3i{32, 24, 24} : Vec3i{72, 64, 80};
  const Grid grid = levelset_grid(size);
  const Vec3d centre = {13, 12, 11};
  const int64_t steps = small_tests() ? 8 : 60;
  for (const int32_t blocks : {1, 2, 7}) {
    for (const bool grows : {true, false}) {
      CAPTURE(blocks, grows);
      std::vector<Run> runs;
      for (const Context& context : {cpu_context(), cuda_context()}) {
        Run run = make_run({.fields = 0}, with_weight(0.05), {}, {.most_blocks = blocks}, context);
        run.add(sphere(grid, centre,
                       grows           ? 1.8
                       : small_tests() ? 9
                                       : 30),
                Volume<int16_t>(grid, static_cast<int16_t>(grows ? kSpeedOne : -kSpeedOne)));
        for (int call = 0; call < 3; ++call) run.evolve(steps);
        runs.push_back(std::move(run));
      }
      check_same(runs[0], runs[1]);
      uint32_t least = UINT32_MAX, most = 0;
      for (const StepCount& step : runs[0].job.history[0]) {
        least = std::min(least, step.active), most = std::max(most, step.active);
      }
      // A block of threads reads up to 8 bricks whole: two blocks do, and later do not.
      CHECK(least <= 12);
      CHECK(most >= 20);
    }
  }
}

TEST_CASE("more active bricks than a block of threads is dealt at a time move the same") {
  // Noise from one voxel to another, where all bricks are active.
  struct Noisy {
    int64_t from = 0, to = INT64_MAX;
  };
  const auto noise = [](const Vec3i& size, const Noisy& where) {
    const Grid grid = levelset_grid(size);
    Volume<float> phi(grid, 3.0F);
    for (int64_t i = where.from; i < std::min(where.to, phi.voxels()); ++i) {
      phi[i] = static_cast<float>(6 * larch::hash_unit(5, 1, static_cast<uint64_t>(i)) - 3);
    }
    return phi;
  };
  const auto check = [&](const Vec3i& size, const Noisy& where, int32_t blocks, int labels = 1) {
    CAPTURE(size.x, size.y, size.z, blocks);
    std::vector<Run> runs;
    for (const Context& context : {cpu_context(), cuda_context()}) {
      Run run = make_run({.fields = 0}, with_weight(0.2), {}, {.most_blocks = blocks}, context);
      for (int f = 0; f < labels; ++f) run.add(noise(size, where), waves({.size = size}, 0));
      run.evolve(2);
      runs.push_back(std::move(run));
    }
    check_same(runs[0], runs[1]);
  };
  // Rows of bricks that need two words.
  check({264, 8, 17}, {.to = 264 * 8 * 8}, 0);
  // 1152 words, more than a block has threads.
  check({8, 9216, 1}, {.from = 8 * (small_tests() ? 9100 : 0)}, 3);
  // 294 bricks for one block, which lists 64 at a time and is dealt 256.
  check({53, 56, 47}, {}, 1);
  // 96 of two labels.
  check({29, 24, 32}, {}, 1, 2);
  if (small_tests()) return;
  // 2197 bricks for one block, then those of two labels in one launch.
  check({104, 104, 104}, {}, 1);
  check({104, 88, 80}, {}, 1, 2);
  // 34000 words, so that each of the 32 parts of a thread's has two.
  check({8, 272000, 8}, {.from = 8 * 263000, .to = 8 * 266000}, 0);
}

TEST_CASE("single voxels amid those that rest move the same on both devices") {
  // Each one wakes its neighbours, whichever brick, row and plane they are in.
  const Scene scene{.size = small_tests() ? Vec3i{34, 27, 25} : Vec3i{77, 61, 58}};
  const Grid grid = levelset_grid(scene.size);
  for (const float rest : {3.0F, -3.0F}) {
    Volume<float> phi(grid, rest);
    for (int64_t i = 0; i < phi.voxels(); ++i) {
      const double drawn = larch::hash_unit(7, 1, static_cast<uint64_t>(i));
      if (drawn < 0.01) phi[i] = static_cast<float>(600 * drawn - 3);
    }
    for (const int32_t blocks : {1, 0}) {
      CAPTURE(rest, blocks);
      std::vector<Run> runs;
      for (const Context& context : {cpu_context(), cuda_context()}) {
        Run run = make_run({.fields = 0}, with_weight(0.1), {}, {.most_blocks = blocks}, context);
        run.add(phi, waves(scene, 0));
        for (int call = 0; call < 3; ++call) run.evolve(1);
        runs.push_back(std::move(run));
      }
      check_same(runs[0], runs[1]);
    }
  }
}

TEST_CASE("several launches of one call move the same on both devices") {
  if (small_tests()) return;
  // A launch makes 2000 steps. A plane moves by 1/80 voxel per step.
  StopRules rules;
  rules.unchanged_labels = 0;
  const Grid slab = levelset_grid({8, 7, 36});
  for (const Way& way : kWays) {
    CAPTURE(name_of(way));
    std::vector<Run> runs;
    for (const Context& context : {cpu_context(), cuda_context()}) {
      Run run = make_run({.fields = 0}, with_weight(0), rules, way, context);
      run.config.time_step = 0.25;
      run.add(volume_of<float>(slab, [](const Vec3d& at) { return at.z - 3.2; }),
              Volume<int16_t>(slab, kSpeedOne / 20));
      run.evolve(4100);
      runs.push_back(std::move(run));
    }
    check_same(runs[0], runs[1]);
    CHECK(runs[1].iterations() > 2000);
  }
}

TEST_CASE("an active set that is found anew, and a stop on demand, change no bit on the device") {
  const int64_t first = small_tests() ? 2 : 13, last = small_tests() ? 2 : 27;
  for (const Way& way : kWays) {
    CAPTURE(name_of(way));
    const Scene scene{.fields = 3};
    Run once = make_run(scene, with_weight(0.1), {}, way, cuda_context());
    once.evolve(first + last);
    Run pieces = make_run(scene, with_weight(0.1), {}, way, cuda_context());
    pieces.evolve(first);
    pieces.job.is_active_known = false;
    const std::atomic<int> stop{143};
    pieces.context.stop = &stop;
    pieces.evolve(10);
    CHECK(static_cast<int>(pieces.job.progress.stop) == static_cast<int>(Stop::kNone));
    pieces.context.stop = nullptr;
    pieces.evolve(last);
    CHECK(pieces.iterations() == once.iterations());
    CHECK(once.job.inside == pieces.job.inside);
    for (size_t f = 0; f < 3; ++f) CHECK(same_bits(once.phi(f), pieces.phi(f)));
  }
}

}  // namespace
}  // namespace larch::levelset
