// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/experts/atlases_math.h"
#include "larch/image/channel_math.h"
#include "larch/image/preprocess.h"
#include "larch/tree/tree_config.h"

namespace larch::voxels {

using learning::WeakKind;
using tree::Balance;
using tree::Routing;
using tree::TreeConfig;
using tree::ValidationConfig;

/// The largest label value of a class.
constexpr int32_t kMaximumClassValue = 65535;

/// Says what is trained.
enum class ClassifierKind : uint8_t {
  kTree = 0,      ///< one probabilistic boosting tree
  kEnsemble = 1,  ///< several, whose posteriors are averaged
  kForest = 2,    ///< a decision forest
};
constexpr auto enum_names(ClassifierKind*) {
  return std::to_array<EnumName<ClassifierKind>>({{ClassifierKind::kTree, "pbt"},
                                                  {ClassifierKind::kEnsemble, "pbt-ensemble"},
                                                  {ClassifierKind::kForest, "decision-forest"}});
}

/// A name for a label value.
struct ClassName {
  int value = 0;
  std::string name;

  template <class F>
  void fields(F&& f) {
    f(Field{"value", value, "label value"}, Field{"name", name, "its name"});
  }
};

struct LabelConfig {
  std::vector<int> positive{};
  std::vector<int> ignore{};
  std::optional<int> border_voxels{};
  std::string class_name = "foreground";
  int class_value = 1;
  std::optional<int> background{};
  std::vector<ClassName> names{};

  std::vector<int> named_values() const {
    std::vector<int> values;
    for (const ClassName& name : names) values.push_back(name.value);
    return values;
  }

  template <class F>
  void fields(F&& f) {
    f(Field{"positive", positive, "label values merged into the class; empty: all but 0"},
      Field{"ignore", ignore, "label values whose voxels are not used at all"},
      Field{"border_voxels", border_voxels,
            "no samples within this many voxels of the boundary; null: 1 for boosting trees, 0 for "
            "a decision-forest",
            0, 16},
      Field{"class_name", class_name, "name of the class, for label tables"},
      Field{"class_value", class_value, "label value that pbt-detect writes", 1,
            kMaximumClassValue},
      Field{"background", background,
            "decision-forest without labels/positive, whose classes are all label values: the one "
            "that is around the structures; null: the background of dataset.json, or 0 where it "
            "occurs and has no name"},
      Field{"names", names,
            "names of label values: of a decision-forest, or of the parts of the class of boosting "
            "trees, which experts then tell apart"}
          .example(R"([{"value": 0, "name": "background"}, {"value": 1, "name": "liver"}])"));
  }
};

struct SpaceConfig {
  std::vector<std::string> components{};
  std::vector<double> spacing_mm{};
  image::Orientation orientation = image::Orientation::kWorld;
  image::Padding padding = image::Padding::kClamp;
  image::IntensityRule intensity;

  template <class F>
  void fields(F&& f) {
    f(Field{"components", components,
            "names of the components of the input: red, green, blue (of pictures), or channels of "
            "dataset.json, or one for each of the columns image, image2, ... of a list; empty: "
            "one"},
      Field{"spacing_mm", spacing_mm,
            "voxel edges of the model along x, y, z; empty: the median of the training images",
            0.01, 1000}
          .lengths({0, 3}),
      Field{"orientation", orientation, "world (left, posterior, superior) or own (as stored)"},
      Field{"padding", padding, "beyond the border: clamp (nearest voxel) or zero"},
      Field{"intensity", intensity, "how intensities become integers"});
  }
};

/// Says what a filter is applied to.
enum class FilterInput : uint8_t { kEach = 0, kLuminance = 1 };
constexpr auto enum_names(FilterInput*) {
  return std::to_array<EnumName<FilterInput>>(
      {{FilterInput::kEach, "each"}, {FilterInput::kLuminance, "luminance"}});
}

/// Channels of a filter, one for each sigma.
struct FilterConfig {
  image::ChannelKind kind = image::ChannelKind::kSmooth;
  std::vector<double> sigma_voxels{1, 2, 4};
  FilterInput of = FilterInput::kEach;

  template <class F>
  void fields(F&& f) {
    f(Field{"kind", kind,
            "smooth, smooth-derivative-x, -y or -z, laplacian-of-gaussian, smooth-gradient or "
            "local-score"},
      Field{"sigma_voxels", sigma_voxels, "of the Gaussian, one channel for each", 0.3, 32}
          .not_empty(),
      Field{"of", of, "each component, or luminance of red, green and blue"});
  }
};

struct FeatureConfig {
  std::vector<image::ChannelKind> channels{image::ChannelKind::kIntensity};
  std::vector<FilterConfig> filters{};
  int pyramid_levels = 2;
  int count = 20000;
  int window = 17;
  std::vector<int> sizes{1, 2, 3, 4, 6, 8, 12};

  template <class F>
  void fields(F&& f) {
    f(Field{"channels", channels,
            "images that features are computed on: intensity, gaussian, gradient-magnitude, "
            "laplacian, derivative-x, derivative-y, derivative-z"},
      Field{"filters", filters, "further images, made with a sigma"}.example(
          R"([{"kind": "smooth", "sigma_voxels": [1, 2]}, {"kind": "laplacian-of-gaussian"}])"),
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
    f(Field{"trees", trees, "trees of the ensemble", 1, tree::kMaximumTrees},
      Field{"bootstrap", bootstrap,
            "each tree is trained on as many volumes as there are, drawn with replacement, anew "
            "until both classes occur"},
      Field{"feature_share", feature_share,
            "share of the features that each tree draws from the pool to choose from", 0.0001, 1});
  }
};

/// Says what the nodes of a decision forest choose from.
enum class ForestPool : uint8_t { kBoxes = 0, kHaar = 1 };
constexpr auto enum_names(ForestPool*) {
  return std::to_array<EnumName<ForestPool>>(
      {{ForestPool::kBoxes, "boxes"}, {ForestPool::kHaar, "haar"}});
}

/// A decision forest on images.
struct ForestConfig : tree::ForestConfig {
  int samples_per_volume = 1500;
  ForestPool pool = ForestPool::kBoxes;
  std::optional<int> reach{};
  std::optional<int> largest_box{};

  template <class F>
  void fields(F&& f) {
    tree::ForestConfig::fields(f);
    f(Field{"samples_per_volume", samples_per_volume,
            "labelled voxels drawn from each volume; 0: all", 0, 2000000000},
      Field{"pool", pool,
            "boxes (one, or the difference of two in any channels, drawn anew for each round) or "
            "haar (the pool of features/count, window and sizes, drawn from in each round)"},
      Field{"reach", reach,
            "boxes: voxels that they lie away at most, along an axis; null: by the sizes of the "
            "images and structures",
            0, 120},
      Field{"largest_box", largest_box, "boxes: longest edge; null: by the same sizes", 1, 120});
  }
};

struct FusionConfig {
  int atlases = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{
        "atlases", atlases,
        "images of as many training cases are stored in the model and vote with the experts, if "
        "this is better in cases that neither saw; then share it as you may share the images; "
        "0: none",
        0, experts::kMaximumAtlases});
  }
};

/// All settings of pbt-train.
struct TrainConfig {
  std::optional<ClassifierKind> classifier{};
  LabelConfig labels;
  SpaceConfig space;
  FeatureConfig features;
  SampleConfig samples;
  TreeConfig tree;
  EnsembleConfig ensemble;
  ValidationConfig validation;
  MiningConfig mining;
  ForestConfig forest;
  std::optional<bool> experts{};
  FusionConfig fusion;
  /// Bounds what the training takes on its device by plan, on the CPU with its volumes; 0: what is
  /// free. It is no key, since no model depends on it.
  int64_t memory_bytes = 0;

  bool needs_experts() const { return experts.value_or(fusion.atlases > 0); }

  template <class F>
  void fields(F&& f) {
    f(Field{"classifier", classifier,
            "pbt (one probabilistic boosting tree), pbt-ensemble (the mean of several) or "
            "decision-forest (of any number of classes); null: of pbt and decision-forest what the "
            "other keys are for, or else pbt for one label beside the background, decision-forest "
            "for several"},
      Field{"labels", labels, "which voxels are the class"},
      Field{"space", space, "the space in which the model works"},
      Field{"features", features, "the pool of features"},
      Field{"samples", samples, "voxels drawn from each volume"},
      Field{"tree", tree, "the tree and its strong classifiers"},
      Field{"ensemble", ensemble, "with classifier pbt-ensemble: what its trees differ in"},
      Field{"validation", validation, "held-out volumes"},
      Field{"mining", mining, "hard negatives"},
      Field{"forest", forest, "with classifier decision-forest: its growth and features"},
      Field{"experts", experts,
            "experts look again at what the trees find; null: from 20 volumes on, if they are "
            "nearer to the labels of cases that they did not learn from"},
      Field{"fusion", fusion, "atlases that vote with the experts"});
  }
};

}  // namespace larch::voxels
