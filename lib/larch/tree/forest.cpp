// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/forest.h"

#include <algorithm>
#include <string>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/tree/check.h"
#include "larch/tree/tree_math.h"

namespace larch::tree {
namespace {

constexpr uint64_t kStream = 0x73656c66;  // "self"

/// The leaves that a vector reaches whose responses are one below, at or one above a bound of the
/// node that asks, as the seed says.
std::vector<uint32_t> leaves_of(const Forest& forest, uint64_t seed) {
  const auto value = [&](const ForestNode& node) {
    const uint64_t draw = hash64(seed, kStream, node.feature);
    const auto bound = static_cast<uint32_t>((draw & 1) != 0 ? node.high : node.low);
    return static_cast<int32_t>(bound + static_cast<uint32_t>(draw >> 32) % 3 - 1);
  };
  std::vector<uint32_t> leaves;
  for (const uint32_t root : forest.roots) {
    leaves.push_back(reached_leaf(forest.nodes.data(), root, value));
  }
  return leaves;
}

/// [leaf][class], Q30. Weights are so small that all samples together stay below 2^32.
std::vector<uint32_t> leaf_probabilities(const Forest& forest) {
  std::vector<uint32_t> probability;
  probability.reserve(forest.counts.size());
  for (size_t l = 0; l < forest.leaves(); ++l) {
    const uint32_t* counts = forest.counts.data() + l * forest.classes;
    uint64_t total = 0;
    for (uint32_t c = 0; c < forest.classes; ++c) {
      total += uint64_t{counts[c]} * forest.class_weight[c];
    }
    for (uint32_t c = 0; c < forest.classes; ++c) {
      const auto mass = static_cast<double>(uint64_t{counts[c]} * forest.class_weight[c]);
      probability.push_back(static_cast<uint32_t>(mass / static_cast<double>(total) * kOneQ30));
    }
  }
  return probability;
}

/// The children of each node come in pairs, level by level, so that each has one parent.
void check_nodes(const Forest& forest, size_t features) {
  size_t tree = 0, next = 0;
  int32_t leaf = 0;
  for (size_t n = 0; n < forest.nodes.size(); ++n) {
    const ForestNode& node = forest.nodes[n];
    const std::string where = "node " + std::to_string(n) + " ";
    if (n == next) {  // all children have been seen: a tree begins
      if (tree == forest.trees() || forest.roots[tree++] != n) {
        refuse_model(where + "has no parent and is no root");
      }
      ++next;
    }
    if (node.is_leaf()) {
      if (node.left != -1 || node.leaf != leaf++) refuse_model(where + "is a leaf out of order");
      continue;
    }
    if (static_cast<size_t>(node.left) != next || next + 2 > forest.nodes.size()) {
      refuse_model(where + "has children out of order");
    }
    next += 2;
    if (node.leaf != -1) refuse_model(where + "has children and the number of a leaf");
    if (node.feature >= features) refuse_model(where + "has a feature out of range");
    if (node.low > node.high) refuse_model(where + "has an empty interval");
  }
  if (tree != forest.trees()) refuse_model("it has roots that are no nodes");
  if (static_cast<uint64_t>(leaf) * forest.classes != forest.counts.size()) {
    refuse_model("it has counts of other leaves than its trees");
  }
}

}  // namespace

int Forest::depth() const {
  std::vector<int> depth(nodes.size(), 0);
  int deepest = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    deepest = std::max(deepest, depth[n]);
    if (nodes[n].is_leaf()) continue;
    const auto left = static_cast<size_t>(nodes[n].left);
    depth[left] = depth[left + 1] = depth[n] + 1;
  }
  return deepest;
}

void check_forest(const Forest& forest, size_t features) {
  if (forest.classes < 1 || forest.classes > 65535) refuse_model("it has no class");
  if (forest.nodes.empty() || forest.nodes.size() > INT32_MAX) refuse_model("it has no node");
  if (forest.trees() > kMaximumTreesOfForest) refuse_model("it has too many trees");
  check_nodes(forest, features);
  if (forest.depth() > kMaximumForestDepth) {
    refuse_model("a tree is deeper than " + std::to_string(kMaximumForestDepth));
  }
  const auto is_zero = [](uint32_t n) { return n == 0; };
  if (forest.class_weight.size() != forest.classes ||
      std::any_of(forest.class_weight.begin(), forest.class_weight.end(), is_zero)) {
    refuse_model("a class has no weight");
  }
  for (size_t l = 0; l < forest.leaves(); ++l) {
    uint64_t total = 0;
    for (uint32_t c = 0; c < forest.classes && total <= UINT32_MAX; ++c) {
      total += uint64_t{forest.counts[l * forest.classes + c]} * forest.class_weight[c];
    }
    if (total == 0 || total > UINT32_MAX) {
      refuse_model("leaf " + std::to_string(l) + " has no samples, or too many");
    }
  }
}

ResidentForest make_resident(const Forest& forest, std::span<const ForestNode> nodes,
                             const Device& device) {
  ResidentForest resident{
      {device, nodes}, {device, forest.roots}, {device, leaf_probabilities(forest)}, {}};
  resident.view = {resident.nodes.data(), resident.roots.data(), resident.probability.data(),
                   static_cast<uint32_t>(forest.trees()), forest.classes};
  return resident;
}

std::vector<ForestSelfTest> make_self_tests(const Forest& forest, uint64_t seed, size_t count) {
  std::vector<ForestSelfTest> tests(count);
  for (size_t t = 0; t < count; ++t) {
    tests[t].seed = hash64(seed, kStream, t);
    tests[t].leaves = leaves_of(forest, tests[t].seed);
  }
  return tests;
}

void run_self_tests(const Forest& forest) {
  for (size_t t = 0; t < forest.self_tests.size(); ++t) {
    if (leaves_of(forest, forest.self_tests[t].seed) == forest.self_tests[t].leaves) continue;
    throw InputError("self-test " + std::to_string(t) +
                     " ends at other leaves: the model file is damaged or this build computes "
                     "wrongly");
  }
}

}  // namespace larch::tree
