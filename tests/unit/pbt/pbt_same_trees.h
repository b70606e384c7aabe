// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>

#include "larch/pbt/model.h"

namespace larch::fixtures {

/// Checks that two ensembles have the same trees, number by number.
inline void check_same_ensembles(const tree::Ensemble& a, const tree::Ensemble& b) {
  REQUIRE(a.roots == b.roots);
  REQUIRE(a.nodes.size() == b.nodes.size());
  REQUIRE(a.weaks.size() == b.weaks.size());
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    CHECK(a.nodes[n].left == b.nodes[n].left);
    CHECK(a.nodes[n].right == b.nodes[n].right);
    CHECK(a.nodes[n].reason == b.nodes[n].reason);
    CHECK(a.nodes[n].heap_index == b.nodes[n].heap_index);
    CHECK(a.nodes[n].mass_positive == b.nodes[n].mass_positive);
    CHECK(a.nodes[n].mass_negative == b.nodes[n].mass_negative);
    CHECK(a.nodes[n].n_weak == b.nodes[n].n_weak);
    CHECK(a.nodes[n].first_weak == b.nodes[n].first_weak);
  }
  for (size_t w = 0; w < a.weaks.size(); ++w) {
    CHECK(a.weaks[w].feature == b.weaks[w].feature);
    CHECK(learning::same_map(a.weaks[w].codes, b.weaks[w].codes));
    CHECK(a.weaks[w].bins.first_code == b.weaks[w].bins.first_code);
    CHECK(a.weaks[w].bins.shift == b.weaks[w].bins.shift);
    CHECK(a.weaks[w].mask == b.weaks[w].mask);
    CHECK(a.weaks[w].alpha_q20 == b.weaks[w].alpha_q20);
  }
}

/// The same of models, whose features are of one pool.
inline void check_same_trees(const pbt::Model& a, const pbt::Model& b) {
  check_same_ensembles(a, b);
  for (size_t w = 0; w < a.weaks.size(); ++w) {
    CHECK(a.features[a.weaks[w].feature].pool_index == b.features[b.weaks[w].feature].pool_index);
  }
}

}  // namespace larch::fixtures
