// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/threshold.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::pbt;
using fixtures::context_of;
using fixtures::grid_of;

}  // namespace

TEST_CASE("A volume that waits on the disk comes back as it was") {
  std::vector<TrainingVolume> volumes = fixtures::hard_volumes(2);
  const std::vector<TrainingVolume> before = volumes;
  const auto scratch = voxels::make_scratch(".");
  for (TrainingVolume& volume : volumes) volume.stow(scratch);
  for (size_t v = 0; v < 2; ++v) {
    CHECK(volumes[v].bytes() == 0);
    CHECK(volumes[v].grid().size == before[v].grid().size);
    const auto back = volumes[v].fetch();
    CHECK(back->bytes() == before[v].bytes());
    CHECK(digest_of(*back) == before[v].digest);
  }
}

TEST_CASE("Samples are the voxels of lowest hash, whatever the order of the volumes") {
  std::vector<TrainingVolume> volumes = fixtures::hard_volumes(3), shuffled = volumes;
  std::swap(shuffled[0], shuffled[2]);
  sort_by_digest(shuffled);
  SampleConfig config;
  config.positives_per_volume = 50;
  config.negatives_per_volume = 70;
  const std::vector<size_t> all{0, 1, 2};
  const SampleSet a = draw_samples(volumes, all, config, 5);
  const SampleSet b = draw_samples(shuffled, all, config, 5);
  CHECK(a.id == b.id);
  CHECK(a.mass == b.mass);
  REQUIRE(a.size() == 3 * 120);
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK((volumes[a.volume(i)].classes[a.voxel(i)] == 1) == (a.positive[i] == 1));
    if (i > 0) CHECK(a.id[i - 1] < a.id[i]);
  }
  CHECK(draw_samples(volumes, all, config, 6).id != a.id);
}

TEST_CASE("Volumes of a group are held out together") {
  std::vector<TrainingVolume> volumes(12);
  const auto alone = hold_out(volumes, 0.25, 3);
  CHECK(alone.held_out.size() == 3);
  for (size_t v = 0; v < volumes.size(); ++v)
    volumes[v].group = v % 3 == 0 ? "a" : v < 6 ? "b" : "";
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const VolumeSplit split = hold_out(volumes, 0.25, seed);
    CHECK(split.held_out.size() >= 3);
    CHECK(split.held_out.size() + split.train.size() == 12);
    for (const size_t a : split.held_out) {
      for (const size_t b : split.train) {
        CHECK((volumes[a].group.empty() || volumes[a].group != volumes[b].group));
      }
    }
  }
  for (TrainingVolume& volume : volumes) volume.group = "one";
  CHECK(hold_out(volumes, 0.25, 3).held_out.empty());
}

TEST_CASE("The threshold of several classes has the best mean of their Dice coefficients") {
  ThresholdSearch search(3);  // 0 is around, a large class 1 and a small one 2
  const auto add = [&](int count, float p, size_t likeliest, int truth) {
    for (int k = 0; k < count; ++k) search.add(p, likeliest, truth);
  };
  CHECK_FALSE(ThresholdSearch(2).best());
  add(100, 0.9F, 1, 1);
  add(10, 0.3F, 2, 2);
  add(8, 0.3F, 1, ThresholdSearch::kNone);
  add(1000, 0.05F, 1, ThresholdSearch::kNone);
  const auto best = search.best();
  REQUIRE(best);
  CHECK(best->threshold == Approx(0.29));
  CHECK(best->class_dice[0] == -1);
  CHECK(best->class_dice[1] == Approx(200.0 / 208));
  CHECK(best->class_dice[2] == 1);
  CHECK(best->dice == Approx((1 + 200.0 / 208) / 2));
}

TEST_CASE("Labels become classes: merged values, ignored values, a border band") {
  LabelVolume labels(grid_of({9, 9, 1}));
  for (int y = 3; y < 6; ++y)
    for (int x = 3; x < 6; ++x) labels({x, y, 0}) = x == 4 ? 2 : 1;
  labels({8, 8, 0}) = 7;
  LabelConfig config;
  config.positive = {1, 2};
  config.ignore = {7};
  config.border_voxels = 1;
  const Volume<uint8_t> classes = voxel_classes(labels, config, context_of());
  CHECK(classes({4, 4, 0}) == 1);
  CHECK(classes({3, 4, 0}) == 2);
  CHECK(classes({2, 4, 0}) == 2);
  CHECK(classes({2, 2, 0}) == 0);  // touches only by its corner
  CHECK(classes({1, 4, 0}) == 0);
  CHECK(classes({8, 8, 0}) == 2);
  // A line that somebody has drawn into what nobody has looked at has no border there.
  for (int x = 3; x < 6; ++x) labels({x, 1, 0}) = labels({x, 2, 0}) = 7;
  const Volume<uint8_t> sparse = voxel_classes(labels, config, context_of());
  CHECK(sparse({4, 0, 0}) == 0);
  CHECK(sparse({4, 1, 0}) == 2);
  CHECK(sparse({4, 3, 0}) == 1);
  CHECK(sparse({3, 3, 0}) == 2);
  config.border_voxels = 0;
  config.positive = {};
  CHECK(voxel_classes(labels, config, context_of())({3, 4, 0}) == 1);
}

TEST_CASE("The border band is that of a search in the city-block neighbourhood") {
  for (const Vec3i size : {Vec3i{13, 11, 9}, Vec3i{17, 1, 6}, Vec3i{20, 14, 1}}) {
    LabelVolume labels(grid_of(size));
    const auto at = [&](int64_t i) { return labels.grid().voxel(i); };
    for (int64_t i = 0; i < labels.voxels(); ++i) {
      labels[i] = hash_below(5, 6, static_cast<uint64_t>(i), 40) == 0 || at(i).x > 10 ? 1 : 0;
    }
    for (int border = 1; border <= 5; ++border) {
      LabelConfig config;
      config.border_voxels = border;
      const Volume<uint8_t> classes = voxel_classes(labels, config, context_of(2));
      for (int64_t i = 0; i < labels.voxels(); ++i) {
        bool near = false;
        for (int64_t j = 0; j < labels.voxels() && !near; ++j) {
          const Vec3i d = at(i) - at(j);
          near = labels[i] != labels[j] && std::abs(d.x) + std::abs(d.y) + std::abs(d.z) <= border;
        }
        REQUIRE(classes[i] == (near ? 2 : labels[i]));
      }
    }
  }
}

TEST_CASE("A draw by hash from values one by one is that from all of them, in bounded memory") {
  for (const size_t count : {size_t{1}, size_t{7}, size_t{500}, size_t{20000}}) {
    std::vector<uint32_t> values;
    learning::LowestHashes<uint32_t> draw(count);
    size_t most = 0;
    const auto hash = [](uint32_t value) { return hash64(3, 4, value) >> 40; };  // with ties
    for (uint32_t i = 0; i < 10000; ++i) {
      values.push_back(i);
      draw.add(hash(i), i);
      most = std::max(most, draw.kept());
    }
    CHECK(most <= 2 * count);
    CHECK(draw.seen() == values.size());
    CHECK(draw.take() == learning::lowest_hashes(values, count, 1, hash));
  }
}
