// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/image/channel_math.h"
#include "larch/image/preprocess.h"
#include "larch/pbt/model.h"

namespace larch::image {
constexpr auto enum_names(ChannelKind*) {
  return std::to_array<EnumName<ChannelKind>>(
      {{ChannelKind::kIntensity, "intensity"},
       {ChannelKind::kGaussian, "gaussian"},
       {ChannelKind::kGradientMagnitude, "gradient-magnitude"},
       {ChannelKind::kLaplacian, "laplacian"},
       {ChannelKind::kDerivativeX, "derivative-x"},
       {ChannelKind::kDerivativeY, "derivative-y"},
       {ChannelKind::kDerivativeZ, "derivative-z"}});
}
constexpr auto enum_names(Padding*) {
  return std::to_array<EnumName<Padding>>({{Padding::kClamp, "clamp"}, {Padding::kZero, "zero"}});
}
}  // namespace larch::image

namespace larch::pbt {

/// The weak classifiers of Birkbeck, Sofka, Zhou 2011, section 3.1: votes over a histogram of the
/// feature's values, or a threshold. They differ in training only.
enum class WeakKind : uint8_t { kHist64 = 0, kThreshold = 1 };
constexpr auto enum_names(WeakKind*) {
  return std::to_array<EnumName<WeakKind>>(
      {{WeakKind::kHist64, "hist64"}, {WeakKind::kThreshold, "threshold"}});
}

/// What is trained.
enum class ClassifierKind : uint8_t {
  kTree = 0,      ///< one probabilistic boosting tree
  kEnsemble = 1,  ///< several, whose posteriors are averaged
};
constexpr auto enum_names(ClassifierKind*) {
  return std::to_array<EnumName<ClassifierKind>>(
      {{ClassifierKind::kTree, "pbt"}, {ClassifierKind::kEnsemble, "pbt-ensemble"}});
}

/// What happens to a sample near the decision boundary of a node.
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

struct LabelConfig {
  std::vector<int> positive{};
  std::vector<int> ignore{};
  int border_voxels = 1;
  std::string class_name = "foreground";
  int class_value = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"positive", positive, "label values merged into the class; empty: all but 0"},
      Field{"ignore", ignore, "label values whose voxels are not used at all"},
      Field{"border_voxels", border_voxels, "no samples within this many voxels of the boundary", 0,
            16},
      Field{"class_name", class_name, "name of the class, for label tables"},
      Field{"class_value", class_value, "label value that pbt-detect writes", 1, 65535});
  }
};

struct SpaceConfig {
  std::vector<double> spacing_mm{};
  image::Orientation orientation = image::Orientation::kWorld;
  image::Padding padding = image::Padding::kClamp;
  image::IntensityRule intensity;

  template <class F>
  void fields(F&& f) {
    f(Field{"spacing_mm", spacing_mm,
            "voxel edges of the model along x, y, z; empty: the median of the training images",
            0.01, 1000}
          .lengths({0, 3}),
      Field{"orientation", orientation, "world (left, posterior, superior) or own (as stored)"},
      Field{"padding", padding, "beyond the border: clamp (nearest voxel) or zero"},
      Field{"intensity", intensity, "how intensities become integers"});
  }
};

struct FeatureConfig {
  std::vector<image::ChannelKind> channels{image::ChannelKind::kIntensity};
  int pyramid_levels = 2;
  int count = 20000;
  int window = 17;
  std::vector<int> sizes{1, 2, 3, 4, 6, 8, 12};

  template <class F>
  void fields(F&& f) {
    f(Field{"channels", channels,
            "images that features are computed on: intensity, gaussian, gradient-magnitude, "
            "laplacian, derivative-x, derivative-y, derivative-z"}
          .not_empty(),
      Field{"pyramid_levels", pyramid_levels,
            "each channel at 1, 1/2, 1/4, ... of the resolution, for long reach", 1, 6},
      Field{"count", count, "features to choose from, all channels together", 1, 16000000},
      Field{"window", window, "edge of the window around a voxel, in voxels of the level", 3, 65}
          .odd(),
      Field{"sizes", sizes, "box edges that occur, in voxels of the level", 1, 64}.not_empty());
  }
};

struct SampleConfig {
  int positives_per_volume = 2000;
  int negatives_per_volume = 4000;

  template <class F>
  void fields(F&& f) {
    f(Field{"positives_per_volume", positives_per_volume, "voxels drawn inside the structure", 1,
            100000000},
      Field{"negatives_per_volume", negatives_per_volume, "voxels drawn outside", 1, 100000000});
  }
};

struct TreeConfig {
  int depth = 6;
  std::vector<int> rounds{40, 42, 44, 48};
  WeakKind weak = WeakKind::kHist64;
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
            "weak classifiers of a node, by depth; the last value holds for deeper nodes", 1, 256}
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

struct ValidationConfig {
  double fraction = 0;
  bool prune = true;
  int patience = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"fraction", fraction, "share of the volumes held out, whole, to watch the training", 0,
            0.9},
      Field{"prune", prune, "turn nodes into leaves where the held-out log-loss allows it"},
      Field{"patience", patience,
            "end a node when the held-out loss has not improved for so many rounds; 0: never", 0,
            256});
  }
};

struct MiningConfig {
  bool enabled = false;
  int per_node = 20000;

  template <class F>
  void fields(F&& f) {
    f(Field{"enabled", enabled,
            "after each level, replace negatives by voxels that the tree so far takes for the "
            "class"},
      Field{"per_node", per_node, "mined negatives of a node at most", 1, 100000000});
  }
};

struct EnsembleConfig {
  int trees = 8;
  bool bootstrap = true;
  double feature_share = 0.5;

  template <class F>
  void fields(F&& f) {
    f(Field{"trees", trees, "trees of the ensemble", 1, kMaxTrees},
      Field{"bootstrap", bootstrap,
            "each tree is trained on as many volumes as there are, drawn with replacement, anew "
            "until both classes occur"},
      Field{"feature_share", feature_share,
            "share of the features that each tree draws from the pool to choose from", 0.0001, 1});
  }
};

/// All settings of pbt-train.
struct TrainConfig {
  ClassifierKind classifier = ClassifierKind::kTree;
  LabelConfig labels;
  SpaceConfig space;
  FeatureConfig features;
  SampleConfig samples;
  TreeConfig tree;
  EnsembleConfig ensemble;
  ValidationConfig validation;
  MiningConfig mining;

  template <class F>
  void fields(F&& f) {
    f(Field{"classifier", classifier,
            "pbt (one probabilistic boosting tree) or pbt-ensemble (the mean of several)"},
      Field{"labels", labels, "which voxels are the class"},
      Field{"space", space, "the space in which the model works"},
      Field{"features", features, "the pool of features"},
      Field{"samples", samples, "voxels drawn from each volume"},
      Field{"tree", tree, "the tree and its strong classifiers"},
      Field{"ensemble", ensemble, "with classifier pbt-ensemble: what its trees differ in"},
      Field{"validation", validation, "held-out volumes"},
      Field{"mining", mining, "hard negatives"});
  }
};

}  // namespace larch::pbt
