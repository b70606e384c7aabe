// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "larch/config/fields.h"
#include "larch/learning/weak_math.h"

namespace larch::tree {

/// Says what happens to a sample near the decision boundary of a node.
enum class Routing : uint8_t {
  kSoft = 0,  ///< to both children, its mass split by the node's probability
  kCopy = 1,  ///< to both children with its whole mass
};
constexpr auto enum_names(Routing*) {
  return std::to_array<EnumName<Routing>>({{Routing::kSoft, "soft"}, {Routing::kCopy, "copy"}});
}

/// How the selected samples of a node are weighted against each other.
enum class Balance : uint8_t {
  kEqual = 0,  ///< each class one half
  kMass = 1,   ///< by the mass of all samples of the class at the node
};
constexpr auto enum_names(Balance*) {
  return std::to_array<EnumName<Balance>>({{Balance::kEqual, "equal"}, {Balance::kMass, "mass"}});
}

/// Which prior the posterior refers to: the share of the class among the training samples, one
/// half, or a given value. The masses of all nodes are scaled to it when a model is compiled.
enum class PriorKind : uint8_t { kTrain = 0, kHalf = 1, kValue = 2 };
constexpr auto enum_names(PriorKind*) {
  return std::to_array<EnumName<PriorKind>>(
      {{PriorKind::kTrain, "train"}, {PriorKind::kHalf, "half"}, {PriorKind::kValue, "value"}});
}

/// Most trees of an ensemble.
constexpr int kMaximumTrees = 1024;

/// The growth of a tree and its strong classifiers.
struct TreeConfig {
  int depth = 6;
  std::vector<int> rounds{40, 42, 44, 48};
  learning::WeakKind weak = learning::WeakKind::kHist64;
  Routing routing = Routing::kSoft;
  double routing_band = 0.1;
  Balance balance = Balance::kEqual;
  int node_features = 0;
  int selected_positives = 2500;
  int selected_negatives = 2500;
  double worst_error = 0.45;
  double purity = 0.9999;
  int min_samples = 100;
  int min_class_samples = 20;
  double tap_cost = 0;
  double smoothing = 1;
  double e1 = 1e-6;
  double e2 = 0.1;
  PriorKind prior = PriorKind::kTrain;
  double prior_value = 0.5;
  bool allow_constant = false;

  template <class F>
  void fields(F&& f) {
    f(Field{"depth", depth, "depth of the tree; the root has depth 0", 0, 32},
      Field{"rounds", rounds,
            "weak classifiers of a node, by depth; the last value holds for deeper nodes", 1,
            learning::kMaximumWeaks}
          .not_empty(),
      Field{"weak", weak, "hist64 (64 votes over the values of a feature) or threshold"},
      Field{"routing", routing, "soft (split the mass of uncertain samples) or copy"},
      Field{"routing_band", routing_band,
            "in training, samples with |p - 1/2| up to this go to both children", 0, 0.5},
      Field{"balance", balance, "equal (classes weigh the same at each node) or mass"},
      Field{"node_features", node_features,
            "features that each node draws from the pool to choose from; 0: all", 0, 16000000},
      Field{"selected_positives", selected_positives, "positive samples a node is trained on", 1,
            10000000},
      Field{"selected_negatives", selected_negatives, "negative samples a node is trained on", 1,
            10000000},
      Field{"worst_error", worst_error, "a weak classifier with a larger error ends the node", 0.01,
            0.5},
      Field{"purity", purity, "a node with this share of one class is a leaf", 0.5, 1},
      Field{"min_samples", min_samples, "a node with fewer samples is a leaf", 2, 1000000000},
      Field{"min_class_samples", min_class_samples,
            "a node with fewer samples of one class is a leaf", 1, 1000000000},
      Field{"tap_cost", tap_cost, "price of 32 taps in units of the error: prefers cheap features",
            0, 1},
      Field{"smoothing", smoothing, "pull of the parent's probability, in mean samples", 0,
            1000000},
      Field{"e1", e1, "stored in the model: certainty beyond which one child is descended", 1e-9,
            0.5},
      Field{"e2", e2, "stored in the model: within 1/2 +- e2 both children are descended", 0, 1},
      Field{"prior", prior, "prior of the posterior: train, half or value"},
      Field{"prior_value", prior_value, "with prior value: the probability of the class", 1e-9,
            0.999999999},
      Field{"allow_constant", allow_constant, "accept training data of one class only"});
  }
};

/// Holds what is held out to watch the training.
struct ValidationConfig {
  std::optional<double> fraction{};
  bool prune = true;
  int patience = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"fraction", fraction,
            "share of the volumes held out, whole, to watch the training and choose the threshold; "
            "null: 0.15 from 20 volumes on, 0 below",
            0, 0.9},
      Field{"prune", prune, "turn nodes into leaves where the held-out log-loss allows it"},
      Field{"patience", patience,
            "end a node when the held-out loss has not improved for so many rounds; 0: never", 0,
            256});
  }
};

/// Says what a split is to make small.
enum class Criterion : uint8_t {
  kInformation = 0,  ///< entropy of the classes: the gain of ID3 (Quinlan 1986)
  kGini = 1,
};
constexpr auto enum_names(Criterion*) {
  return std::to_array<EnumName<Criterion>>(
      {{Criterion::kInformation, "information-gain"}, {Criterion::kGini, "gini"}});
}

/// Says how often the samples of a class count when a split is chosen, and in a leaf.
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
