// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/forest/model.h"
#include "larch/forest/train.h"
#include "larch/models/feature_layout.h"
#include "larch/models/tree_layout.h"
#include "larch/pbt/train/train.h"

/// Says what a model of boosting trees, and the checkpoint of one, consist of.

namespace larch::models {

/// The class that a model tells from the rest.
struct ClassLabel {
  voxels::ModelInfo& info;
};
template <class V>
void layout(V& v, ClassLabel& label) {
  v("name", label.info.class_name, "name of the class");
  v("value", label.info.class_value, "its value in label maps");
}

/// Returns what every model that labels voxels says about itself.
template <class V>
void image_model_fields(V& v, voxels::ImageModel& model) {
  v("space", Space{model.space, model.padding}, "the images it is for");
  v("tool_version", model.info.tool_version, "version of Larch that trained it");
  v("seed", model.info.seed, "of all draws");
  v("volume_digests", model.info.volume_digests, "SHA-256 of each training volume");
  v("training", JsonText{model.info.training_config_json}, "the configuration");
}

/// Holds experts without their coefficients, which are a section of their own.
struct ExpertMeta {
  experts::Experts& experts;
};
template <class V>
void layout(V& v, experts::Part& part) {
  auto& [value, name] = part;
  v("value", value, "value in label maps");
  v("name", name, "its name");
}
template <class V>
void layout(V& v, ExpertMeta& meta) {
  v("parts", meta.experts.parts, "structures that they tell apart");
  v("turns", meta.experts.turns, "1: the axes of a structure turn its frame");
  auto& [w, x, y, z] = meta.experts.mean_axes;
  v("mean_axes_w", w, "of a quaternion: axes of the mean structure");
  v("mean_axes_x", x, "the same");
  v("mean_axes_y", y, "the same");
  v("mean_axes_z", z, "the same");
  v("table", meta.experts.table, "the parts, where the model has one class");
  v("entries", meta.experts.entries, "by node: its place among the coefficients");
}
template <class V>
void layout(V& v, experts::Atlas& atlas) {
  auto& [size, placement, image, part] = atlas;
  v("size", size, "voxels along x, y, z");
  constexpr const char* kNames[3][3] = {{"x_from_x", "x_from_y", "x_from_z"},
                                        {"y_from_x", "y_from_y", "y_from_z"},
                                        {"z_from_x", "z_from_y", "z_from_z"}};
  for (int k = 0; k < 9; ++k) {
    v(kNames[k / 3][k % 3], placement.matrix.m[k / 3][k % 3], "places of nodes from indices");
  }
  v("offset", placement.offset, "of that way");
  v("image", image, "intensities around the structures of a training case");
  v("part", part, "the structure of each voxel; -1: none");
}
template <class V>
void expert_sections(V& v, experts::Experts& experts) {
  About about{"experts that look again at what was found"};
  about.left_out = experts.empty();
  v.section("experts", ExpertMeta{experts}, about);
  about.doc = "their coefficients, of 2^-26, by node, structure and feature";
  v.section("expert_coefficients", experts.beta, about);
  about = {"images of training cases, which vote with the experts"};
  about.left_out = experts.atlases.empty();
  v.section("atlases", experts.atlases, about);
}

/// Holds what a model says about itself.
struct Meta {
  pbt::Model& model;
};
template <class V>
void layout(V& v, Meta& meta) {
  v("class", ClassLabel{meta.model.info}, "the class");
  image_model_fields(v, meta.model);
}

/// The sections that models and checkpoints have.
template <class V>
void model_sections(V& v, pbt::Model& model) {
  v.section("meta", Meta{model}, {"what the model says about itself"});
  v.section("channels", model.channels, {"images that features are computed on"});
  input_sections(v, model.components, model.channels);
  v.section("features", model.features, {"Haar features"});
  v.section("validation", model.info.validation,
            {"measurements on held-out volumes", /*required=*/false});
  ensemble_sections(v, "", model);
}

template <class V>
void sections(V& v, pbt::Model& model) {
  v.kind({"pbt", 1, "probabilistic boosting trees"});
  about_section(v, model.info.about);
  model_sections(v, model);
  expert_sections(v, model.experts);
}

/// How far a training is, and a digest of all that it depends on.
struct Progress {
  uint64_t& finished;
  std::string& fingerprint;
};
template <class V>
void layout(V& v, Progress& progress) {
  auto& [finished, fingerprint] = progress;
  v("finished", finished, "nodes that have been trained");
  v("fingerprint", fingerprint, "digest of the settings and the training data");
}

template <class V>
void sections(V& v, Checkpoint<pbt::PartialModel>& checkpoint) {
  v.kind({"pbt-checkpoint", 1, "probabilistic boosting trees in training"});
  auto& [model, nodes] = checkpoint.partial;
  uint64_t finished = nodes;
  v.section("progress", Progress{finished, checkpoint.fingerprint}, {"how far the training is"});
  nodes = finished;
  model_sections(v, model);
}

/// Says what a decision forest, and the checkpoint of one, consist of.

template <class V>
void layout(V& v, forest::ForestClass& one) {
  auto& [value, name] = one;
  v("value", value, "value in label maps");
  v("name", name, "its name");
}

template <class V>
void layout(V& v, tree::ForestNode& node) {
  auto& [left, feature, low, high, leaf] = node;
  v("left", left, "index of a child, behind which the other one stands; -1: a leaf");
  v("feature", feature, "index into the features");
  v("low", low, "values from it ...");
  v("high", high, "... to it go to the other child");
  v("leaf", leaf, "number of the leaf; -1: none");
}

template <class V>
void layout(V& v, tree::ForestSelfTest& test) {
  auto& [seed, leaves] = test;
  v("seed", seed, "of the responses");
  v("leaves", leaves, "that each tree has to reach");
}

/// The trees of a forest. `prefix` as that of ensemble_sections; `left_out`: there is no forest.
template <class V>
void forest_sections(V& v, const std::string& prefix, tree::Forest& forest, bool left_out = false) {
  const auto about = [&](const char* doc) { return About{doc, true, left_out}; };
  v.section(prefix + "nodes", forest.nodes, about("all trees, each level by level"));
  v.section(prefix + "roots", forest.roots, about("index of the first node of each tree"));
  v.section(prefix + "counts", forest.counts,
            about("samples of each class at each leaf, leaf by leaf"));
  v.section(prefix + "self_tests", forest.self_tests,
            about("responses evaluated whenever it is read"));
}

/// Holds what a forest says about itself.
struct ForestMeta {
  forest::Model& model;
};
template <class V>
void layout(V& v, ForestMeta& meta) {
  v("background", meta.model.background, "index of the class around the structures; -1: none");
  image_model_fields(v, meta.model);
}

template <class V>
void sections(V& v, forest::Model& model) {
  v.kind({"forest", 1, "a decision forest"});
  about_section(v, model.info.about);
  v.section("meta", ForestMeta{model}, {"what the model says about itself"});
  v.section("classes", model.class_table, {"the classes"});
  v.section("class_weights", model.class_weight, {"factors of the counts of the classes"});
  v.section("channels", model.channels, {"images that features are computed on"});
  input_sections(v, model.components, model.channels);
  v.section("features", model.features, {"sums of boxes"});
  v.section("validation", model.info.validation,
            {"measurements on held-out volumes", /*required=*/false});
  forest_sections(v, "", model);
  expert_sections(v, model.experts);
  model.classes = static_cast<uint32_t>(model.class_table.size());
}

template <class V>
void layout(V& v, tree::PickedColumn& pick) {
  auto& [round, column] = pick;
  v("round", round, "that drew the column");
  v("column", column, "its number among those drawn, or in the pool");
}

template <class V>
void layout(V& v, tree::ForestTree& tree) {
  auto& [nodes, picked, rounds, counts] = tree;
  v("nodes", nodes, "nodes, whose features are indices into picked");
  v("picked", picked, "columns that nodes ask");
  v("rounds", rounds, "that are done");
  v("counts", counts, "of a tree that is grown: samples of each class at each node");
}

template <class V>
void sections(V& v, Checkpoint<forest::PartialForest>& checkpoint) {
  v.kind({"forest-checkpoint", 1, "a decision forest in training"});
  uint64_t finished = checkpoint.partial.size();
  v.section("progress", Progress{finished, checkpoint.fingerprint}, {"how far the training is"});
  v.section("trees", checkpoint.partial, {"trees as far as they have grown"});
}

}  // namespace larch::models
