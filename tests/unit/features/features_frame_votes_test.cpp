// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/features/steerable/frame_trees.h"
#include "larch/features/steerable/steerable.h"
#include "tests/unit/pbt/pbt_fixtures.h"

using namespace larch;

TEST_CASE("Weak classifiers side by side vote as they do one by one, at boxes inside and outside") {
  const std::vector<features::SteerableFeature> pool =
      features::steerable_pool(features::SteerableSet::kBase9, features::kVertexPoints);
  std::vector<tree::FlatTree> flat(1);
  flat[0].nodes.resize(1);
  std::vector<tree::FlatWeak>& weaks = flat[0].weaks;
  for (uint64_t i = 0; i < pool.size(); ++i) {
    const auto lo = static_cast<int32_t>(hash_below(1, 1, i, 4000)) - 4000,
               span = static_cast<int32_t>(hash_below(1, 2, i, i % 3 == 0 ? 300 : 20000)) + 1;
    const auto first = static_cast<uint32_t>(hash_below(1, 3, i, 200));
    weaks.push_back({learning::make_code_map(lo, lo + span),
                     learning::make_bin_map(first, first + 55),
                     static_cast<int32_t>(hash_below(1, 5, i, 1 << 20)), hash64(1, 4, i),
                     static_cast<uint32_t>(i), 0});
  }
  const tree::ResidentTrees trees = features::resident_trees(pool, flat, Device::cpu());
  if (trees.columns.empty()) return;  // a machine without these instructions
  const auto other = features::steerable_pool(features::SteerableSet::kSeed21);
  CHECK(features::resident_trees(other, flat, Device::cpu()).columns.empty());
  for (const Vec3i size : {Vec3i{31, 20, 26}, Vec3i{1, 1, 1}, Vec3i{2, 40, 1}}) {
    const Volume<int16_t> v = fixtures::noise_volume(size, 4, -8191, 24574);
    const auto pyramid =
        image::make_levels(v.view(), features::kSteerableLevels - 1, 0, fixtures::context_of(1));
    const features::SteerableImages images = features::steerable_images(pyramid, 0, 1023);
    for (uint64_t i = 0; i < 20; ++i) {
      const auto drawn = [&](uint64_t k) { return hash_unit(2, k, i); };
      const Pose pose{{80 * drawn(0) - 10, 60 * drawn(1) - 10, 60 * drawn(2) - 10},
                      from_rotation_vector({2 * drawn(3), 2 * drawn(4) - 1, drawn(5)}),
                      {1 + 20 * drawn(6), 1 + 20 * drawn(7), 1 + 20 * drawn(8)}};
      const auto frame = features::frame_of(pose, image::level_scale(2, 0));
      const features::FrameResponse response{pool.data(), images, frame};
      for (int32_t first = 0, count = 1; first < static_cast<int32_t>(weaks.size());
           first += count, count = count % 60 + 1) {
        tree::FlatNode node;
        node.first = first;
        node.n_weak = std::min(count, static_cast<int32_t>(weaks.size()) - first);
        int32_t expected = 0;
        for (int32_t w = first; w < first + node.n_weak; ++w) {
          const tree::FlatWeak& weak = weaks[static_cast<size_t>(w)];
          const bool vote =
              learning::weak_vote(weak.codes, weak.bins, weak.mask, response(weak.feature, 0));
          expected += vote ? weak.alpha : -weak.alpha;
        }
        CHECK(response.votes(trees.views.data()[0], node) == expected);
      }
    }
  }
}
