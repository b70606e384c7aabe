// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/learning/weak_math.h"
#include "larch/tree/tree_config.h"
#include "larch/tree/tree_math.h"

namespace larch::tree {

using learning::WeakClassifier;

/// Why a node has no children, or why its growth ended.
enum class NodeReason : uint16_t {
  kGrown = 0,
  kMaximumDepth,
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

/// One row of the training curve.
struct NodeHistory {
  int32_t node = 0;
  uint32_t samples = 0, selected_positive = 0, selected_negative = 0;
  std::vector<double> errors;  ///< weighted error of each round
};

/// Responses of the features of one vector and the probability they lead to, checked at every load.
struct SelfTest {
  std::vector<int32_t> responses;  ///< one per feature
  uint32_t probability_q32 = 0;
};

/// One or more probabilistic boosting trees (Tu 2005; Birkbeck, Sofka, Zhou 2011), whose posterior
/// is the mean of the trees' (US 2012/0069003 A1): all that knows neither images nor features. The
/// nodes of each tree are together, in breadth-first order from its root; child > parent.
struct Ensemble {
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

  size_t trees() const { return roots.size(); }
  /// Returns one past the last node of a tree.
  size_t end_of_tree(size_t tree) const {
    return tree + 1 < roots.size() ? roots[tree + 1] : nodes.size();
  }
  int depth() const;
};

/// Returns the table of logistic_q30.
std::vector<uint32_t> make_logistic_table();

/// t1 and t2 as Q20 integers from e1 and e2: the H at which p = 1 / (1 + exp(-2 H)) is 1 - e1 and
/// 1/2 + e2.
Thresholds make_thresholds(double e1, double e2, bool hard);

/// Empirical probability of each node in Q30, smoothed towards its parent, after the prior rule.
std::vector<uint32_t> node_probabilities(const Ensemble& trees);

/// Choices that may be made at evaluation.
struct EvaluationRule {
  double e1 = -1;  ///< < 0: the ensemble's
  bool hard = false;
  double e2 = -1;  ///< < 0: the ensemble's
};
Thresholds thresholds_of(const Ensemble& trees, const EvaluationRule& rule);

/// The reference evaluation (Birkbeck, Sofka, Zhou 2011, Algorithm 2), for an ensemble the mean of
/// its trees: posterior in Q60 of a vector of feature values, responses[f] that of feature f of the
/// weak classifiers. Recursive by nature, written with a stack. `q_q30`: node_probabilities.
uint64_t posterior_q60(const Ensemble& trees, const EvaluationRule& rule,
                       std::span<const uint32_t> q_q30, std::span<const int32_t> responses);

}  // namespace larch::tree
