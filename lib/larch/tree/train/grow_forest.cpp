// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/grow_forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "larch/core/error.h"
#include "larch/tree/train/forest_split.h"
#include "larch/tree/train/samples.h"

namespace larch::tree {
namespace {

SplitRule rule_of(const ForestTask& task) {
  const ForestConfig& config = task.config;
  SplitRule rule{task.classes,
                 config.bins,
                 config.intervals ? 1 : 0,
                 config.criterion,
                 static_cast<uint32_t>(config.min_leaf),
                 config.min_gain,
                 task.seed};
  if (config.leaf_share < 1) rule.share_bound = static_cast<uint64_t>(config.leaf_share * 0x1p64);
  return rule;
}

/// A tree and its samples, level by level.
class Growth {
 public:
  Growth(const ForestTask& task, const Context& context)
      : task_(task), context_(context), rule_(rule_of(task)) {
    std::vector<uint32_t> times(task.times.begin(), task.times.end()), node(task.label.size(), 0);
    for (size_t i = 0; i < times.size(); ++i) node[i] = times[i] > 0 ? 0 : kNoNode;
    times.resize(node.size(), 0);
    const Device& device = context.device;
    samples_ = {Buffer<uint32_t>(device, node), Buffer<uint16_t>(device, task.label),
                Buffer<uint32_t>(device, times), Buffer<uint32_t>(device, task.class_weight),
                Buffer<int64_t>(device, entropy_terms())};
    const int64_t memory = task.memory_bytes > 0
                               ? task.memory_bytes
                               : static_cast<int64_t>(free_memory_bytes(device) / 2);
    half_memory_ = memory / 2;
  }

  bool is_done() const {
    return first_open_ == tree_.nodes.size() ||
           tree_.rounds >= static_cast<uint32_t>(task_.config.depth);
  }
  const ForestTree& tree() const { return tree_; }

  /// Adds a level, by tests that are chosen or, if `known` has grown farther, as it has them.
  void add_level(const ForestTree* known) {
    const RoundColumns round = task_.draw(tree_.rounds);
    const auto columns = round.source->prepare({round.columns, round.maps}, context_);
    list_rows();
    const auto matrix = codes_of(round, *columns);
    const auto end = static_cast<uint32_t>(tree_.nodes.size());
    if (known != nullptr && known->rounds > tree_.rounds) {
      copy_level(*known, end);
    } else {
      std::vector<LeafSplit> splits(end - first_open_);
      split_leaves(
          {*matrix, *columns, rows_, samples_, rule_, first_open_, splits, half_memory_, context_});
      add_nodes(round, splits);
    }
    route(round, *columns, *matrix, end);
    first_open_ = end;
    ++tree_.rounds;
  }

  GrownForestTree take() {
    std::vector<uint32_t> node = samples_.node.to_vector();
    const uint32_t classes = task_.classes;
    tree_.counts.assign(tree_.nodes.size() * classes, 0);
    for (size_t i = 0; i < task_.times.size(); ++i) {
      if (task_.times[i] > 0) {
        tree_.counts[size_t{node[i]} * classes + task_.label[i]] += task_.times[i];
      }
    }
    for (size_t n = tree_.nodes.size(); n-- > 0;) {
      if (tree_.nodes[n].is_leaf()) continue;
      for (uint32_t c = 0; c < classes; ++c) {
        const size_t left = static_cast<size_t>(tree_.nodes[n].left) * classes + c;
        tree_.counts[n * classes + c] = tree_.counts[left] + tree_.counts[left + classes];
      }
    }
    return {std::move(tree_), std::move(node)};
  }

 private:
  /// On the CPU only samples at open leaves have rows in a matrix; a GPU passes over the others,
  /// and a matrix that is kept has all.
  void list_rows() {
    rows_.clear();
    if (context_.device.is_cuda() || task_.kept != nullptr) return;
    for (uint32_t i = 0; i < task_.label.size(); ++i) {
      const uint32_t node = samples_.node.data()[i];
      if (node != kNoNode && node >= first_open_) rows_.push_back(i);
    }
  }

  std::shared_ptr<learning::FeatureMatrix> codes_of(const RoundColumns& round,
                                                    const learning::PreparedColumns& columns) {
    if (task_.kept != nullptr && *task_.kept != nullptr) return *task_.kept;
    const size_t rows = rows_.empty() ? task_.label.size() : rows_.size();
    const auto bytes = static_cast<int64_t>(rows * columns.slots.size());
    if (bytes > half_memory_) {
      throw MemoryError("the codes of " + std::to_string(round.columns.size()) + " features at " +
                        std::to_string(rows) + " samples take " + std::to_string(bytes) +
                        " bytes, and " + std::to_string(half_memory_) +
                        " are for them; allow more memory, or use fewer forest/round_features or "
                        "samples");
    }
    auto matrix = std::make_shared<learning::FeatureMatrix>(columns, rows);
    round.source->fill(columns, rows_, *matrix, context_);
    if (task_.kept != nullptr) *task_.kept = matrix;
    return matrix;
  }

  static const learning::CodeMap& map_of(const RoundColumns& round, uint32_t column) {
    const auto at = std::lower_bound(round.columns.begin(), round.columns.end(), column);
    return round.maps[static_cast<size_t>(at - round.columns.begin())];
  }

  /// The nodes that the splits make of the open leaves, and the columns that they ask.
  void add_nodes(const RoundColumns& round, const std::vector<LeafSplit>& splits) {
    std::unordered_map<uint32_t, uint32_t> pick_of;
    for (size_t l = 0; l < splits.size(); ++l) {
      const LeafSplit& split = splits[l];
      if (!split.found()) continue;
      const learning::CodeMap& map = map_of(round, split.column);
      const uint32_t factor = bin_factor(map, rule_.bins);
      const auto [entry, is_new] =
          pick_of.emplace(split.column, static_cast<uint32_t>(tree_.picked.size()));
      if (is_new) tree_.picked.push_back({tree_.rounds, split.column});
      ForestNode& node = tree_.nodes[first_open_ + l];
      node.feature = entry->second;
      node.left = static_cast<int32_t>(tree_.nodes.size());
      node.low = first_value(map, first_code(factor, split.begin));
      // Bins beyond the last code are empty: the one before holds all values from some on.
      const uint32_t end_code = first_code(factor, split.end);
      if (split.end < rule_.bins && end_code <= learning::code_of(map, map.hi)) {
        node.high = first_value(map, end_code) - 1;
      }
      tree_.nodes.resize(tree_.nodes.size() + 2);
    }
  }

  /// The level that a tree has which grew farther.
  void copy_level(const ForestTree& known, uint32_t end) {
    for (uint32_t n = first_open_; n < end; ++n) {
      if (known.nodes[n].is_leaf()) continue;
      tree_.nodes[n] = known.nodes[n];
      tree_.nodes.resize(tree_.nodes.size() + 2);
    }
    for (size_t p = tree_.picked.size();
         p < known.picked.size() && known.picked[p].round == tree_.rounds; ++p) {
      tree_.picked.push_back(known.picked[p]);
    }
  }

  /// Moves the samples of the leaves that were open and end at `end`.
  void route(const RoundColumns& round, const learning::PreparedColumns& columns,
             const learning::FeatureMatrix& matrix, uint32_t end) {
    std::unordered_map<uint32_t, uint32_t> slot_of;
    for (uint32_t s = 0; s < columns.slots.size(); ++s) slot_of.emplace(columns.slots[s].column, s);
    std::vector<LeafRoute> routes(end - first_open_);
    for (size_t l = 0; l < routes.size(); ++l) {
      const ForestNode& node = tree_.nodes[first_open_ + l];
      if (node.is_leaf()) continue;
      const uint32_t column = tree_.picked[node.feature].column;
      const auto slot = slot_of.find(column);
      if (slot == slot_of.end() || column == learning::kFilling) {
        throw InputError("the checkpoint names features that were not drawn; delete it");
      }
      const learning::CodeMap& map = map_of(round, column);
      routes[l] = {
          slot->second, static_cast<uint32_t>(node.left),
          static_cast<uint8_t>(learning::code_of(map, node.low)),
          static_cast<uint8_t>(node.high == INT32_MAX ? 255 : learning::code_of(map, node.high))};
    }
    route_leaves({matrix, rows_, samples_.node, first_open_, routes, context_});
  }

  const ForestTask& task_;
  const Context& context_;
  SplitRule rule_;
  int64_t half_memory_ = 0;  ///< for codes, and as much for histograms
  GrowingSamples samples_;
  std::vector<uint32_t> rows_;
  uint32_t first_open_ = 0;
  ForestTree tree_;
};

}  // namespace

RoundColumns all_columns(std::shared_ptr<const learning::FeatureSource> source,
                         std::vector<learning::CodeMap> maps) {
  RoundColumns all{std::move(source), std::vector<uint32_t>(maps.size()), std::move(maps)};
  std::iota(all.columns.begin(), all.columns.end(), 0u);
  return all;
}

RoundColumns draw_round(const RoundColumns& all, int wanted, uint64_t seed, uint32_t round) {
  RoundColumns out{all.source,
                   draw_columns({}, all.columns.size(), static_cast<size_t>(wanted), seed, round),
                   {}};
  if (out.columns.empty()) return all;
  for (const uint32_t column : out.columns) out.maps.push_back(all.maps[column]);
  return out;
}

GrownForestTree grow_tree(const ForestTask& task, const Context& context) {
  Growth growth(task, context);
  while (!growth.is_done()) {
    context.throw_if_stopped("stopped after a round; continue with --resume");
    growth.add_level(task.resume);
    if (task.after_round) task.after_round(growth.tree());
  }
  return growth.take();
}

Forest forest_of(const std::vector<ForestTree>& trees, uint32_t classes,
                 std::span<const uint32_t> class_weight,
                 const std::function<uint32_t(size_t, const PickedColumn&)>& feature_of) {
  Forest forest;
  forest.classes = classes;
  forest.class_weight.assign(class_weight.begin(), class_weight.end());
  forest.roots.clear();
  int32_t leaves = 0;
  for (size_t t = 0; t < trees.size(); ++t) {
    const auto root = static_cast<int32_t>(forest.nodes.size());
    forest.roots.push_back(static_cast<uint32_t>(root));
    for (size_t n = 0; n < trees[t].nodes.size(); ++n) {
      ForestNode node = trees[t].nodes[n];
      if (node.is_leaf()) {
        node = {};
        node.leaf = leaves++;
        const auto counts = trees[t].counts.begin() + static_cast<std::ptrdiff_t>(n * classes);
        forest.counts.insert(forest.counts.end(), counts, counts + classes);
      } else {
        node.left += root;
        node.feature = feature_of(t, trees[t].picked[node.feature]);
      }
      forest.nodes.push_back(node);
    }
  }
  return forest;
}

std::vector<uint32_t> class_weights(const ForestConfig& config, std::span<const uint64_t> samples) {
  std::vector<uint32_t> weights(samples.size(), 1);
  if (config.class_weights == ClassWeights::kNone) return weights;
  const auto occurring = std::ranges::count_if(samples, [](auto n) { return n > 0; });
  for (size_t c = 0; c < samples.size(); ++c) {
    if (samples[c] == 0) continue;
    // A tree may draw a volume again and again, for which most of the range is left.
    const double weight = 0x1p27 / static_cast<double>(occurring) / static_cast<double>(samples[c]);
    weights[c] = static_cast<uint32_t>(std::max(1.0, std::floor(weight)));
  }
  return weights;
}

}  // namespace larch::tree
