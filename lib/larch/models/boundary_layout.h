// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/boundary/train/train.h"
#include "larch/models/hdn_layout.h"

/// The parts of a boundary model and of its checkpoint.
namespace larch::models {

template <class V>
void layout(V& v, shape::ShapeQuality& quality) {
  auto& [cases, modes_95, share, generalisation_mm, specificity_mm] = quality;
  v("cases", cases, "that the shape was learned from");
  v("modes_95", modes_95, "compactness: modes with 95 % of the variance");
  v("share", share, "of the variance, in the modes");
  v("generalisation_mm", generalisation_mm,
    "root mean square distance of cases left out from all shapes");
  v("specificity_mm", specificity_mm, "distance of random shapes from the nearest case");
}

/// The mean and what is known about the modes, which are a section of their own.
template <class V>
void layout(V& v, shape::ShapeModel& shape) {
  auto& [mean_mm, edges_mm, variances_mm2, modes, quality] = shape;
  v("edges_mm", edges_mm, "of the box of the mean");
  v("mean_mm", mean_mm, "vertices of the sphere template, from the centre of their box");
  v("variances_mm2", variances_mm2, "of the coefficients of the modes");
  v("quality", quality, "how good the modes are");
}

/// Without features and trees, which are sections of their own.
template <class V>
void layout(V& v, boundary::Stage& stage) {
  auto& [halvings, range_voxels, features, trees] = stage;
  v("halvings", halvings, "of the finest resolution");
  v("range_voxels", range_voxels, "displacements that are tried, to either side");
}

template <class V>
void layout(V& v, boundary::Confidence& confidence) {
  auto& [usual, deviations, calibration] = confidence;
  v("usual", usual, "means of right results: -ln p, lost vertices, modes, off the modes, size");
  v("deviations", deviations, "of the same");
  v("calibration", calibration, "of minus the sum of the deviations that are worse");
}

/// A structure without modes, mean shape, features and trees, which are sections of their own; all
/// structures have the space of their file.
template <class V>
void layout(V& v, boundary::Model& model) {
  auto& [space, structure, labels, refine, shape, mean_distance_mm, stages, confidence, info] =
      model;
  v("name", structure, "name of the structure");
  v("labels", labels, "its values in label maps");
  v("refine", refine, "how meshes are refined");
  v("confidence", confidence, "how it knows whether it is in the right place");
  v("validation", info.validation, "what cross-validation says");
  v("levels", stages, "of the mesh: 602, 1202, 2402 vertices");
  v("shape", shape, "the mean shape");
}

/// The origin of a boundary model.
struct BoundaryMeta {
  boundary::Models& models;
};
template <class V>
void layout(V& v, BoundaryMeta& meta) {
  auto& [space, structures, info] = meta.models;
  auto padding = image::Padding::kClamp;
  v("space", Space{space, padding}, "the images it is for, at the finest resolution");
  info_layout(v, info);
}

/// The sections of a structure; `of` begins their names.
template <class V>
void boundary_sections(V& v, const std::string& of, boundary::Model& model) {
  v.section(of + "modes", model.shape.modes, {"of the shape, by mode and vertex"});
  v.section(of + "mean_shape", MeanShape{model.mean_distance_mm},
            {"of label maps that were fitted"});
  for (size_t i = 0; i < model.stages.size(); ++i) {
    const std::string prefix = of + "levels/" + std::to_string(i) + "/";
    v.section(prefix + "features", model.stages[i].features, {"steerable features at vertices"});
    ensemble_sections(v, prefix, model.stages[i].trees);
  }
}

inline constexpr Kind kBoundaryKind{"boundary", 3, "shapes and boundaries of structures"};
/// The section of the structures tells how many there are and how many levels they have, so that it
/// is read before theirs.
template <class V>
void sections(V& v, boundary::Models& models) {
  v.kind(kBoundaryKind);
  about_section(v, models.info.about);
  v.section("meta", BoundaryMeta{models}, {"what the model says about itself"});
  v.section("structures", models.structures, {"the structures, their shapes and levels"});
  for (size_t s = 0; s < models.structures.size(); ++s) {
    boundary_sections(v, "structures/" + std::to_string(s) + "/", models.structures[s]);
  }
}

template <class V>
void layout(V& v, boundary::LevelReport& report) {
  auto& [range_voxels, positives, negatives, recall, before_mm, after_mm, features, trees,
         refinement] = report;
  v("range_voxels", range_voxels, "displacements that are tried, to either side");
  v("positives", positives, "places on the boundary");
  v("negatives", negatives, "places off the boundary");
  v("recall", recall, "share of vertices whose best displacement is within half a voxel");
  v("before_mm", before_mm, "mean distance from the true surface");
  v("after_mm", after_mm, "the same after the level");
  v("features_s", features, "seconds that it took");
  v("trees_s", trees, "seconds that it took");
  v("refinement_s", refinement, "seconds that it took");
}

template <class V>
void sections(V& v, Checkpoint<boundary::PartialTraining>& checkpoint) {
  v.kind({"boundary-checkpoint", 3, "structure of a boundary model in training"});
  auto& [fingerprint, training] = checkpoint;
  auto padding = image::Padding::kClamp;
  v.section("fingerprint", fingerprint, {"digest of the settings and the training data"});
  v.section("reports", training.report, {"what the levels made of the training cases"});
  v.section("meshes", training.meshes, {"by case and start, mm along the axes of the grid"});
  v.section("astray", training.astray, {"the same of wrong starts, from which nothing is learned"});
  v.section("space", Space{training.model.space, padding}, {"the images it is for"});
  v.section("structure", training.model, {"its shape and levels"});
  boundary_sections(v, "", training.model);
}

}  // namespace larch::models
