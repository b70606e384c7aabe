// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/detect.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

/// Probabilities with many ties, in an order of one kind.
Volume<float> probabilities(int kind) {
  Volume<float> p(fixtures::grid_of({17, 13, 11}));
  for (int64_t i = 0; i < p.voxels(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    p[i] = kind == 0   ? static_cast<float>(hash_unit(1, 2, at))
           : kind == 1 ? static_cast<float>(hash_below(1, 2, at, 5)) / 4
           : kind == 2 ? static_cast<float>(i) / static_cast<float>(p.voxels())
           : kind == 3 ? 1 - static_cast<float>(i) / static_cast<float>(p.voxels())
                       : (i % 2 == 0 ? 0.0F : -0.0F);
  }
  return p;
}

TEST_CASE("the best candidates are the first of all voxels in order") {
  for (int kind = 0; kind < 5; ++kind) {
    const Volume<float> p = probabilities(kind);
    std::vector<int64_t> order(static_cast<size_t>(p.voxels()));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
    for (const int64_t count : {1, 2, 3, 100, 1215, 1216, 2430, 2431, 5000}) {
      const auto best = top_candidates(p, count);
      REQUIRE(best.size() == static_cast<size_t>(std::min(count, p.voxels())));
      for (size_t k = 0; k < best.size(); ++k) {
        REQUIRE(best[k].voxel == order[k]);
        REQUIRE(best[k].probability == p[order[k]]);
      }
    }
    CHECK(top_candidates(p, 0).empty());
    CHECK(top_candidates(p, -1).empty());
  }
  CHECK(top_candidates(Volume<float>(), 5).empty());
}

}  // namespace
}  // namespace larch
