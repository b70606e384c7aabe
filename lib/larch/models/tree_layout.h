// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/data/model_info.h"
#include "larch/models/layout.h"
#include "larch/tree/ensemble.h"

/// Says what boosting trees consist of, whatever their features are.
namespace larch::models {

template <class V>
void layout(V& v, ModelAbout& about) {
  layout(v, about.card);
  v("training_list", about.training_list,
    "SHA-256 of the digests of the training cases, a line each");
}
/// Older models have no such section.
template <class V>
void about_section(V& v, ModelAbout& about) {
  v.section("about", about,
            {"what its makers say of the model, and what it learned from", /*required=*/false,
             /*left_out=*/about.training_list.empty()});
}

template <>
inline constexpr auto kLastEnumerator<tree::NodeReason> = tree::NodeReason::kPruned;

template <class V>
void layout(V& v, tree::WeakClassifier& weak) {
  auto& [feature, codes, bins, mask, alpha_q20] = weak;
  auto& [lo, hi, multiplier] = codes;
  auto& [first_code, shift] = bins;
  v("feature", feature, "index into the features");
  v("lo", lo, "value with code 0");
  v("hi", hi, "value with the last code");
  v("multiplier", multiplier, "of value - lo; the high bits of the product are the code");
  v("first_code", first_code, "code with bin 0");
  v("shift", shift, "codes per bin, as a power of two");
  v("mask", mask, "bit b: the vote for bin b");
  v("alpha_q20", alpha_q20, "weight of the vote");
}

template <class V>
void layout(V& v, tree::Node& node) {
  auto& [depth, left, right, first_weak, n_weak, mass_positive, mass_negative, heap_index, reason] =
      node;
  v("depth", depth, "distance from the root");
  v("left", left, "index of the child for negative votes; -1: a leaf");
  v("right", right, "index of the child for positive votes; -1: a leaf");
  v("first_weak", first_weak, "index into the weak classifiers");
  v("n_weak", n_weak, "number of weak classifiers");
  v("mass_positive_q32", mass_positive, "sum of the weights of the class's samples");
  v("mass_negative_q32", mass_negative, "sum of the weights of the other samples");
  v("heap_index", heap_index, "root 1, children of i: 2 i and 2 i + 1");
  v("reason", reason, "why its growth ended");
}

template <class V>
void layout(V& v, tree::NodeHistory& history) {
  auto& [node, samples, selected_positive, selected_negative, errors] = history;
  v("node", node, "index into the nodes");
  v("samples", samples, "samples that reached the node");
  v("selected_positive", selected_positive, "samples of the class that boosting saw");
  v("selected_negative", selected_negative, "other samples that boosting saw");
  v("errors", errors, "weighted error of each round");
}

template <class V>
void layout(V& v, tree::SelfTest& test) {
  auto& [responses, probability_q32] = test;
  v("responses", responses, "value of each feature");
  v("probability_q32", probability_q32, "what the trees have to give for them");
}

/// How leaves and thresholds become probabilities.
struct Rule {
  tree::Ensemble& trees;
};
template <class V>
void layout(V& v, Rule& rule) {
  auto& [weaks, nodes, roots, e1, e2, prior, prior_value, smoothing, mean_mass, logistic, history,
         self_tests] = rule.trees;
  v("e1", e1, "beyond probability 1 - e1 only one child is visited");
  v("e2", e2, "between 1/2 - e2 and 1/2 + e2 both children are visited");
  v("prior", prior, "which prior the probabilities refer to");
  v("prior_value", prior_value, "with prior value: the share of the class");
  v("smoothing", smoothing, "weight of the parent's share, in mean sample weights");
  v("mean_mass_q32", mean_mass, "mean weight of a sample");
}

/// The sections of an ensemble. `prefix`, for example "trees/3/", begins their names where a model
/// has several ensembles.
template <class V>
void ensemble_sections(V& v, const std::string& prefix, tree::Ensemble& trees) {
  auto& [weaks, nodes, roots, e1, e2, prior, prior_value, smoothing, mean_mass, logistic, history,
         self_tests] = trees;
  v.section(prefix + "rule", Rule{trees}, {"how leaves and thresholds become probabilities"});
  v.section(prefix + "weak_classifiers", weaks, {"thresholded features"});
  v.section(prefix + "nodes", nodes, {"all trees, each breadth first"});
  v.section(prefix + "roots", roots, {"index of the first node of each tree"});
  v.section(prefix + "logistic_q30", logistic, {"table of the logistic function"});
  v.section(prefix + "history", history, {"the training of each node", /*required=*/false});
  v.section(prefix + "self_tests", self_tests, {"vectors evaluated whenever it is read"});
}

}  // namespace larch::models
