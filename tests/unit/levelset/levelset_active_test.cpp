// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <catch2/catch.hpp>

#include "larch/levelset/evolve/brick_steps.h"
#include "tests/unit/levelset/problems.h"

// That the active sets of bricks and rows hold every voxel whose stencil holds a change: whole runs
// miss such a voxel only where it would have changed by more than the dead zone.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::levelset::cpu;
using namespace larch::test;

constexpr Vec3i kSize{29, 27, 19};

Vec3i drawn_voxel(uint64_t seed, uint64_t index) {
  const auto below = [&](uint64_t axis, int32_t size) {
    return static_cast<int32_t>(hash_below(seed, axis, index, static_cast<uint32_t>(size)));
  };
  return {below(0, kSize.x), below(1, kSize.y), below(2, kSize.z)};
}

/// A voxel and those that read it.
std::vector<Vec3i> readers_of(const BrickLayout& layout, const Vec3i& at) {
  std::vector<Vec3i> all;
  for (int32_t i = 0; i < 27; ++i) {
    const Vec3i by{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1}, to = at + by;
    const bool is_corner = by.x != 0 && by.y != 0 && by.z != 0;
    const bool is_inside = to.x >= 0 && to.y >= 0 && to.z >= 0 && to.x < layout.size.x &&
                           to.y < layout.size.y && to.z < layout.size.z;
    if (!is_corner && is_inside) all.push_back(to);
  }
  return all;
}

int64_t brick_with(const BrickLayout& layout, const Vec3i& at) {
  return layout.offset(at) / kBrickVoxels;
}

TEST_CASE("what changed wakes the bricks and the rows that read it") {
  const BrickLayout layout = make_brick_layout(kSize);
  for (uint64_t trial = 0; trial < 400; ++trial) {
    std::vector<RowChanges> changes(static_cast<size_t>(layout.bricks()));
    std::set<int64_t> bricks;  // that have to be computed
    std::vector<RowMask> rows(changes.size());
    for (uint64_t k = 0; k < 1 + trial % 3; ++k) {
      const Vec3i at = drawn_voxel(trial, k);
      RowChanges& own = changes[static_cast<size_t>(brick_with(layout, at))];
      const RowMask bit = RowMask{1} << (at.z % kBrick * kBrick + at.y % kBrick);
      own.step = 5;
      own.rows |= bit;
      if (at.x % kBrick == 0) own.first |= bit;
      if (at.x % kBrick == kBrick - 1) own.last |= bit;
      for (const Vec3i& reader : readers_of(layout, at)) {
        const int64_t brick = brick_with(layout, reader);
        bricks.insert(brick);
        rows[static_cast<size_t>(brick)] |= RowMask{1}
                                            << (reader.z % kBrick * kBrick + reader.y % kBrick);
      }
    }
    std::set<int64_t> woken;
    for (int64_t b = 0; b < layout.bricks(); ++b) {
      const Vec3i at = layout.brick_at(b);
      const uint32_t bits = bricks_to_wake(changes[static_cast<size_t>(b)]);
      for (int32_t i = 0; i < 27; ++i) {
        const Vec3i there = at + Vec3i{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
        const bool is_there = there.x >= 0 && there.y >= 0 && there.z >= 0 &&
                              there.x < layout.count.x && there.y < layout.count.y &&
                              there.z < layout.count.z;
        if ((bits >> i & 1) != 0 && is_there) woken.insert(layout.brick_of(there));
      }
      const RowMask inside = brick_halo(layout, b).inside;
      const RowMask computed = rows_to_compute(layout, changes, 5, b) & inside;
      CAPTURE(trial, b);
      REQUIRE((rows[static_cast<size_t>(b)] & ~computed) == 0);
      REQUIRE(rows_to_compute(layout, changes, 6, b) == 0);
    }
    CAPTURE(trial);
    REQUIRE(std::includes(woken.begin(), woken.end(), bricks.begin(), bricks.end()));
    // One change alone wakes no brick too many.
    if (trial % 3 == 0) REQUIRE(woken == bricks);
  }
}

TEST_CASE("a brick belongs to the first set where a stencil is uneven or the buffers differ") {
  const Grid grid = levelset_grid(kSize);
  Run run;
  const int fields = GENERATE(1, 2);
  for (int f = 0; f < fields; ++f) run.add(Volume<float>(grid, 3), Volume<int16_t>(grid));
  run.evolve(0);
  const JobPhi phi(run.job);
  const BrickLayout& layout = run.job.fields[0].layout;
  const auto active = [&] {
    std::set<int64_t> bricks;
    const EvenBricks even(layout, phi, 2);
    for (int64_t b = 0; b < layout.bricks(); ++b) {
      const bool can = can_change(layout, phi, b);
      if (can) bricks.insert(b);
      REQUIRE(!(can && even.are_around(b)));
    }
    return bricks;
  };
  CHECK(active().empty());
  for (int64_t b = 0; b < layout.bricks(); ++b) CHECK(EvenBricks(layout, phi, 1).are_around(b));
  for (uint64_t trial = 0; trial < 300; ++trial) {
    const Vec3i at = drawn_voxel(1000, trial);
    const auto i = layout.offset(at);
    std::set<int64_t> readers;
    for (const Vec3i& reader : readers_of(layout, at)) readers.insert(brick_with(layout, reader));
    float* first = run.job.fields[0].phi[0].data();
    first[i] = 2.5F;
    run.job.fields[0].phi[1].data()[i] = 2.5F;
    CAPTURE(at.x, at.y, at.z);
    REQUIRE(active() == readers);
    first[i] = 3;  // now the buffers differ, and phi is even
    REQUIRE(active() == std::set<int64_t>{brick_with(layout, at)});
    run.job.fields[0].phi[1].data()[i] = 3;
  }
  if (fields == 1) return;
  // Two fields that are even and overlap.
  for (LevelsetField& field : run.job.fields) {
    for (Buffer<float>& buffer : field.phi) std::fill_n(buffer.data(), buffer.size(), -1.0F);
  }
  CHECK(active().size() == static_cast<size_t>(layout.bricks()));
}

}  // namespace
