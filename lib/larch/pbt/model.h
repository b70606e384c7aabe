// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larch/features/haar.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/learning/weak_math.h"
#include "larch/pbt/tree_math.h"

namespace larch::pbt {

/// A thresholded feature: 64 votes over the bins of its value (Birkbeck et al., section 3.1; a
/// simple threshold is the special case of a mask with ones on one side).
struct WeakClassifier {
  uint32_t feature = 0;  ///< index into Model::features
  CodeMap codes;
  BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};

/// Why a node has no children, or why its growth ended.
enum class NodeReason : uint16_t {
  kGrown = 0,
  kMaxDepth,
  kPure,
  kFewSamples,
  kFewOfOneClass,
  kNoWeakClassifier,
  kNothingSeparated,  ///< a strong classifier, whose children are leaves
  kEmpty,             ///< no sample reached it
  kPruned,            ///< turned into a leaf on validation volumes
};
const char* to_string(NodeReason reason);

/// A node: an AdaBoost strong classifier and the empirical distribution of all samples that reached
/// it (internal nodes too, since Algorithm 1 uses the q of any child).
struct Node {
  int32_t depth = 0;
  int32_t left = -1, right = -1;
  uint32_t first_weak = 0, n_weak = 0;
  uint64_t mass_positive = 0, mass_negative = 0;  ///< Q32
  uint64_t heap_index = 1;  ///< root 1, children 2i and 2i + 1: the node id of hashes
  NodeReason reason = NodeReason::kGrown;

  bool is_leaf() const { return left < 0; }
};

/// Which prior the posterior refers to: the share of the class among the training samples, one
/// half, or a given value. The masses of all nodes are scaled to it when a model is compiled.
enum class PriorKind : uint8_t { kTrain = 0, kHalf = 1, kValue = 2 };
constexpr auto enum_names(PriorKind*) {
  return std::to_array<EnumName<PriorKind>>(
      {{PriorKind::kTrain, "train"}, {PriorKind::kHalf, "half"}, {PriorKind::kValue, "value"}});
}

/// One row of the training curve.
struct NodeHistory {
  int32_t node = 0;
  uint32_t samples = 0, selected_positive = 0, selected_negative = 0;
  std::vector<double> errors;  ///< weighted error of each round
};

/// Responses of the features of one vector and the probability they lead to, checked at every load.
struct SelfTest {
  std::vector<int32_t> responses;  ///< one a feature of the model
  uint32_t probability_q32 = 0;
};

/// What the model says about itself; no paths, devices, threads or times, so that the file depends
/// on the data and the settings alone.
struct ModelInfo {
  std::string tool_version;
  std::string class_name = "foreground";
  int32_t class_value = 1;           ///< label value written for the class
  std::string training_config_json;  ///< the effective configuration
  std::vector<std::string> volume_digests;
  uint64_t seed = 0;
  std::vector<std::pair<std::string, double>> validation;
};

/// Most trees of an ensemble.
constexpr int kMaxTrees = 1024;

/// A probabilistic boosting tree (Tu 2005; Birkbeck, Sofka, Zhou 2011), or an ensemble of them
/// whose posterior is the mean of the trees' (patent US20120069003), with all that evaluation
/// needs. The nodes of each tree are together, in breadth-first order from its root; child >
/// parent.
struct Model {
  std::vector<image::ChannelSpec> channels;
  image::Padding padding = image::Padding::kClamp;
  image::ModelSpace space;
  std::vector<features::HaarFeature> features;
  std::vector<WeakClassifier> weaks;
  std::vector<Node> nodes;
  std::vector<uint32_t> roots{0};  ///< the first node of each tree
  double e1 = 1e-6, e2 = 0.1;
  PriorKind prior = PriorKind::kTrain;
  double prior_value = 0.5;
  double smoothing = 1;    ///< k, in units of the mean sample mass
  uint64_t mean_mass = 0;  ///< Q32
  std::vector<uint32_t> logistic;
  std::vector<NodeHistory> history;
  std::vector<SelfTest> self_tests;
  ModelInfo info;

  size_t trees() const { return roots.size(); }
  /// One past the last node of a tree.
  size_t end_of_tree(size_t tree) const {
    return tree + 1 < roots.size() ? roots[tree + 1] : nodes.size();
  }
  int depth() const;
  /// Farthest reach of its features in voxels of their levels.
  int reach() const;
};

/// The table of logistic_q30.
std::vector<uint32_t> make_logistic_table();

/// t1 and t2 as Q20 integers from e1 and e2: the H at which p = 1 / (1 + exp(-2 H)) is 1 - e1 and
/// 1/2 + e2.
Thresholds make_thresholds(double e1, double e2, bool hard);

/// Empirical probability of each node in Q30, smoothed towards its parent, after the prior rule.
std::vector<uint32_t> node_probabilities(const Model& model);

/// Choices that may be made at evaluation.
struct EvaluationRule {
  double e1 = -1;  ///< < 0: the model's
  bool hard = false;
  bool early_rejection = false;
};

/// A tree flattened for one layout of the integral channels, still on the host.
struct CompiledTree {
  std::vector<NodeRecord> nodes;
  std::vector<WeakRecord> weaks;
  std::vector<features::LinearTap> taps;
  std::vector<int32_t> rest;
  std::vector<uint32_t> logistic;
  Thresholds thresholds;
  int depth = 0;
  bool early_rejection = false;
  mutable std::shared_ptr<const void> on_device{};  ///< what a device made of it for its last job

  TreeView view() const;
};
/// All trees of a model.
struct CompiledModel {
  std::vector<CompiledTree> trees;
  std::vector<image::IntegralLayout> layouts;  ///< that the offsets of the taps are for

  /// Of the deepest tree.
  int depth() const;
};
/// Flattens a model that check_model accepts. `layouts`: one a channel of the model. Throws
/// MemoryError if an offset leaves 32 bits.
CompiledModel compile(const Model& model, std::span<const image::IntegralLayout> layouts,
                      const EvaluationRule& rule);

/// The reference evaluation (Birkbeck, Sofka, Zhou 2011, Algorithm 2), for an ensemble the mean of
/// its trees: posterior in Q60 of a vector that gives each weak classifier's vote. Recursive by
/// nature, written with a stack. `response(f)` is the value of feature f of the model.
uint64_t posterior_q60(const Model& model, const EvaluationRule& rule,
                       std::span<const uint32_t> q_q30, std::span<const int32_t> responses);

/// Checks every invariant that evaluation relies on: children after parents and in range, weak
/// classifiers and features in range, depth, alpha sums, channel indices, table length. Throws
/// InputError that says which one failed.
void check_model(const Model& model);

}  // namespace larch::pbt
