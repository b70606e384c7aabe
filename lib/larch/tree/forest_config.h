// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "larch/config/fields.h"

namespace larch::tree {

/// What a split is to make small.
enum class Criterion : uint8_t {
  kInformation = 0,  ///< entropy of the classes: the gain of ID3 (Quinlan 1986)
  kGini = 1,
};
constexpr auto enum_names(Criterion*) {
  return std::to_array<EnumName<Criterion>>(
      {{Criterion::kInformation, "information-gain"}, {Criterion::kGini, "gini"}});
}

/// How often the samples of a class count when a split is chosen, and in a leaf.
enum class ClassWeights : uint8_t {
  kNone = 0,      ///< as often as they are
  kBalanced = 1,  ///< each class the same
};
constexpr auto enum_names(ClassWeights*) {
  return std::to_array<EnumName<ClassWeights>>(
      {{ClassWeights::kNone, "none"}, {ClassWeights::kBalanced, "balanced"}});
}

constexpr int kMaximumForestDepth = 24;
constexpr int kMaximumTreesOfForest = 1024;

/// The growth of a decision forest.
struct ForestConfig {
  int trees = 10;
  int depth = 16;
  int round_features = 100;
  int bins = 30;
  bool intervals = false;
  Criterion criterion = Criterion::kInformation;
  double leaf_share = 1;
  double min_gain = 0;
  int min_leaf = 1;
  std::optional<bool> bootstrap{};
  ClassWeights class_weights = ClassWeights::kNone;

  template <class F>
  void fields(F&& f) {
    f(Field{"trees", trees, "trees of the forest", 1, kMaximumTreesOfForest},
      Field{"depth", depth, "depth of the trees; the root has depth 0", 0, kMaximumForestDepth},
      Field{"round_features", round_features,
            "features that are drawn for each round, which adds a level to a tree", 1, 100000},
      Field{"bins", bins, "bins of a feature's values, between which a threshold may lie", 2, 64},
      Field{"intervals", intervals, "a node asks for an interval of values, not for a threshold"},
      Field{"criterion", criterion, "what a split is chosen by: information-gain or gini"},
      Field{"leaf_share", leaf_share, "share of the features of a round that each node looks at",
            0.001, 1},
      Field{"min_gain", min_gain, "a split has to gain more, in bits (gini: of the index)", 0, 10},
      Field{"min_leaf", min_leaf, "samples of a leaf at least", 1, 1000000000},
      Field{
          "bootstrap", bootstrap,
          "each tree is trained on as many volumes as there are, drawn with replacement; null: in "
          "networks, not in forests of voxels"},
      Field{"class_weights", class_weights,
            "how often samples count: none (once) or balanced (classes weigh the same)"});
  }
};

}  // namespace larch::tree
