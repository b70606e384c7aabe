// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <catch2/catch.hpp>

#include "larch/hdn/train/stage_training.h"
#include "larch/learning/stored_codes.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace larch::hdn {
namespace {

/// Samples of six cases, with columns of wide, narrow and no range.
struct Stand {
  Stand() {
    for (size_t i = 0; i < values.positive.size(); ++i) {
      for (size_t c = 0; c < values.columns; ++c) {
        const uint32_t range[] = {1000000, 3000, 40, 1};
        values.at(i, c) = static_cast<int32_t>(hash_below(c, 1, i, range[c])) - 20;
      }
      samples.id.push_back(uint64_t{i / kOfCase} << 40 | i);
      samples.positive.push_back(values.at(i, 0) > 400000 || i % 17 == 0 ? 1 : 0);
    }
    for (size_t c = 0; c < cases.size(); ++c) cases[c].group = c;
    config.folds = 3;
    shared.forest.round_features = 3;
  }
  StageForest grow(size_t fold) const {
    const auto source = values.source();
    return grow_forest(task, {source, samples, fixtures::RangedTable(values).maps}, fold, {});
  }

  static constexpr size_t kOfCase = 60;
  fixtures::Table values{6 * kOfCase, 4};
  tree::Samples samples;
  std::vector<TrainingCase> cases{6};
  Model model;
  HdnConfig config;
  SharedConfig shared;
  StageTask task{cases, model, 0, {}, {}, {}, config, shared};
};

TEST_CASE("a forest that grows from codes asks for the values that a forest of values asks for") {
  Stand stand;
  stand.shared.forest.intervals = GENERATE(false, true);
  const StageForest of_values = stand.grow(3);
  const std::vector<learning::CodeMap> maps = fixtures::RangedTable(stand.values).maps;
  for (size_t i = 0; i < stand.values.values.size(); ++i) {
    int32_t& value = stand.values.values[i];
    value = static_cast<int32_t>(learning::code_of(maps[i % 4], value));
  }
  const auto codes = stand.values.source();
  const std::vector<learning::CodeMap> of_codes = learning::maps_of_codes(maps);
  const StageForest decoded =
      grow_forest(stand.task, {codes, stand.samples, of_codes, maps}, 3, {});
  CHECK(decoded.columns == of_values.columns);
  CHECK(fixtures::same(decoded.forest, of_values.forest));
}

TEST_CASE("a forest of a fold learns from as many cases, and from no case of its fold") {
  Stand stand;
  stand.shared.forest.bootstrap = GENERATE(false, true);
  stand.shared.forest.trees = 1;
  const tree::Forest before = stand.grow(1).forest;
  CHECK(std::accumulate(before.counts.begin(), before.counts.end(), 0U) == 4 * Stand::kOfCase);
  for (size_t i = 0; i < stand.samples.size(); ++i) {
    if (i / Stand::kOfCase % 3 == 1) stand.samples.positive[i] ^= 1;
  }
  CHECK(fixtures::same(before, stand.grow(1).forest));
  CHECK_FALSE(fixtures::same(before, stand.grow(2).forest));
}

}  // namespace
}  // namespace larch::hdn
