// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/tree/train/grow_forest.h"
#include "tests/unit/learning/table_source.h"

namespace larch::fixtures {

/// A table whose samples are of any classes.
struct ForestTable {
  explicit ForestTable(Table from) : table(std::move(from)) {
    label.assign(table.positive.begin(), table.positive.end());
  }
  TableResponse response() const { return {table.values.data(), table.columns}; }

  Table table;
  std::vector<uint16_t> label;
  uint32_t classes = 2;
};

inline tree::Forest grow_forest(const ForestTable& table, const tree::ForestConfig& config,
                                const Context& context) {
  const auto source =
      std::make_shared<learning::ResponseSource<TableResponse>>(table.table.source());
  std::vector<uint32_t> all(table.label.size());
  std::iota(all.begin(), all.end(), 0u);
  const auto maps = source->range(
      std::span(all).first(std::min<size_t>(all.size(), learning::kMaximumRanged)), context);
  std::vector<uint64_t> counts(table.classes, 0);
  for (const uint16_t l : table.label) ++counts[l];
  const auto weights = tree::class_weights(config, counts);
  std::vector<tree::ForestTree> grown;
  for (size_t t = 0; t < static_cast<size_t>(config.trees); ++t) {
    const bool draws = config.bootstrap.value_or(true);
    std::vector<uint32_t> times(all.size(), draws ? 0 : 1);
    for (size_t i = 0; draws && i < times.size(); ++i) {
      ++times[hash_below(t, 3, i, static_cast<uint32_t>(times.size()))];
    }
    tree::ForestTask task{config, table.classes, table.label, times, weights, t};
    task.draw = [&](uint32_t round) {
      tree::RoundColumns out{source, {}, {}};
      for (uint32_t c = 0; c < source->columns(); ++c) {
        const bool few = static_cast<size_t>(config.round_features) < source->columns();
        if (few && hash_below(t, round, c, 8) >= static_cast<uint32_t>(config.round_features))
          continue;
        out.columns.push_back(c);
        out.maps.push_back(maps[c]);
      }
      return out;
    };
    grown.push_back(tree::grow_tree(task, context).tree);
  }
  return tree::forest_of(grown, table.classes, weights,
                         [](size_t, const tree::PickedColumn& pick) { return pick.column; });
}

/// The distributions of items, [item][class].
template <class Response>
std::vector<float> distributions(const tree::Forest& forest, const Response& response,
                                 size_t items) {
  const auto resident = tree::make_resident(forest, forest.nodes, Device::cpu());
  std::vector<float> p;
  for (size_t item = 0; item < items; ++item) {
    for (uint32_t c = 0; c < forest.classes; ++c) {
      p.push_back(tree::item_probability(resident.view, c, response, item));
    }
  }
  return p;
}

/// Share of the samples whose likeliest class is theirs.
inline double accuracy(const tree::Forest& forest, const ForestTable& table) {
  const auto p = distributions(forest, table.response(), table.label.size());
  size_t right = 0;
  for (size_t i = 0; i < table.label.size(); ++i) {
    const auto begin = p.begin() + static_cast<std::ptrdiff_t>(i * forest.classes);
    right += std::max_element(begin, begin + forest.classes) - begin == table.label[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(table.label.size());
}

inline bool same(const tree::Forest& a, const tree::Forest& b) {
  const auto equal = [](const tree::ForestNode& m, const tree::ForestNode& n) {
    return m.left == n.left && m.feature == n.feature && m.low == n.low && m.high == n.high &&
           m.leaf == n.leaf;
  };
  return a.classes == b.classes && a.roots == b.roots && a.counts == b.counts &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), equal);
}

/// A forest of two classes that grows from noise.
inline tree::Forest random_forest(uint64_t seed, int trees, int depth, size_t features) {
  ForestTable noise(Table(300, features));
  std::vector<int32_t>& values = noise.table.values;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int32_t>(hash_below(seed, 1, i, 20000)) - 10000;
  }
  for (size_t i = 0; i < noise.label.size(); ++i) noise.label[i] = hash64(seed, 2, i) % 2;
  tree::ForestConfig config;
  config.trees = trees;
  config.depth = depth;
  config.intervals = true;
  tree::Forest forest = grow_forest(noise, config, cpu_context());
  forest.self_tests = tree::make_self_tests(forest, seed);
  return forest;
}

}  // namespace larch::fixtures
