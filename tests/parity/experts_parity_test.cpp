// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/experts/atlases.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/experts/experts_fixtures.h"

namespace larch {
namespace {

TEST_CASE("experts learn and say the same bytes on both devices",
          "[experts::sum][experts::read][experts::smooth][experts::fuse]") {
  const Context gpu = test::cuda_context(), cpu = test::cpu_context();
  std::vector<fixtures::WhiteVoxels> all;
  const Vec3d half = test::sized<Vec3d>({5.3, 3.2, 2.1}, {1.2, 0.5, 0.5});
  for (const uint64_t seed : {1, 2, 3, 4}) {
    all.push_back(fixtures::white_voxels(seed, half, {24, 20, 18}));
    for (int8_t& part : all.back().part) part = part == 0 && seed % 2 == 0 ? 1 : part;
  }
  experts::Trained a = fixtures::train_experts(all, 2, cpu);
  const experts::Trained b = fixtures::train_experts(all, 2, gpu);
  CHECK(a.all.entries == b.all.entries);
  CHECK(a.all.beta == b.all.beta);
  CHECK(a.without_fold[1].beta == b.without_fold[1].beta);
  const auto looked = [&](const Context& context) {
    const experts::Resident resident = experts::make_resident(a.all, context.device);
    return experts::look_again(a.all, resident, all[0].image, experts::kFullIntensity,
                               all[0].probability, int64_t{1} << 28, context);
  };
  const auto p = looked(cpu), q = looked(gpu);
  REQUIRE(p.size() == 2);
  CHECK(std::ranges::equal(p[0], q[0]));
  CHECK(std::ranges::equal(p[1], q[1]));
  CHECK(std::ranges::any_of(p[0], [](float value) { return value > 0.1F; }));
  for (const size_t i : {1, 2}) {
    a.all.atlases.push_back(
        experts::make_atlas(a.all, all[i].image, all[i].part, experts::kFullIntensity, cpu));
  }
  const auto voted = looked(cpu), voted_there = looked(gpu);
  CHECK(std::ranges::equal(voted[0], voted_there[0]));
  CHECK(std::ranges::equal(voted[1], voted_there[1]));
  CHECK_FALSE(std::ranges::equal(voted[0], p[0]));
}

TEST_CASE("experts learn the same from slices of few cases at a time", "[experts::sum]") {
  const std::vector<fixtures::WhiteVoxels> all = fixtures::few_samples(3);
  const experts::Trained a = fixtures::train_experts(all, 1, test::cpu_context());
  const experts::Trained b = fixtures::train_experts(all, 1, test::cuda_context(), 1 << 21);
  CHECK(a.all.entries == b.all.entries);
  CHECK(a.all.beta == b.all.beta);
}

}  // namespace
}  // namespace larch
