// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/models/feature_layout.h"
#include "larch/models/tree_layout.h"
#include "larch/pbt/train/train.h"

/// What a model of boosting trees, and the checkpoint of one, consist of.
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

/// What every model that labels voxels says about itself.
template <class V>
void image_model_fields(V& v, voxels::ImageModel& model) {
  v("space", Space{model.space, model.padding}, "the images it is for");
  v("tool_version", model.info.tool_version, "version of Larch that trained it");
  v("seed", model.info.seed, "of all draws");
  v("volume_digests", model.info.volume_digests, "SHA-256 of each training volume");
  v("training", JsonText{model.info.training_config_json}, "the configuration");
}

/// What a model says about itself.
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
  model_sections(v, model);
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

}  // namespace larch::models
