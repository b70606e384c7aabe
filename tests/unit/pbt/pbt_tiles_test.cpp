// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::pbt;
using fixtures::context_of;

}  // namespace

TEST_CASE("Tiles on images of any width, with coarse channels and a region") {
  fixtures::RandomTree spec;
  spec.depth = 5;
  spec.weaks = 9;
  spec.channels = {{image::ChannelKind::kIntensity, 1},
                   {image::ChannelKind::kIntensity, 0},
                   {image::ChannelKind::kLaplacian, 2},
                   {image::ChannelKind::kGaussian, 0}};
  spec.self_tests = false;
  for (const Vec3i size : {Vec3i{1, 1, 1}, Vec3i{7, 3, 2}, Vec3i{8, 5, 3}, Vec3i{15, 4, 4},
                           Vec3i{19, 9, 5}, Vec3i{41, 6, 7}, Vec3i{67, 17, 9}}) {
    const Model model = fixtures::random_model(static_cast<uint64_t>(size.x), spec);
    const Volume<int16_t> v = fixtures::noise_volume(size, 5);
    const image::IntegralSet set =
        image::integral_set(v.view(), model.channels, model.padding, model.reach(), context_of());
    Volume<uint8_t> roi(v.grid());
    for (int64_t i = 0; i < roi.voxels(); ++i) {
      roi[i] = hash64(3, 9, static_cast<uint64_t>(i)) % 4 == 0;
    }
    EvaluateConfig config;
    config.walk = Walk::kStack;
    const Volume<float> expected = evaluate({model, {}}, set, v.grid(), config, context_of());
    config.walk = Walk::kTile;
    const Volume<float> p = evaluate({model, {}}, set, v.grid(), config, context_of(2));
    const Volume<float> inside = evaluate({model, {}}, set, v.grid(), config, context_of(), &roi);
    CHECK(std::equal(p.begin(), p.end(), expected.begin()));
    for (int64_t i = 0; i < roi.voxels(); ++i) {
      REQUIRE(inside[i] == (roi[i] ? expected[i] : 0.0F));
    }
  }
}
