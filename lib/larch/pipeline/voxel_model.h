// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/forest/evaluate.h"
#include "larch/models/model_file.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/evaluate/slabs.h"

// A model that labels voxels, boosting trees or a decision forest, as one thing.
namespace larch::pipeline {

const pbt::ImageModel& image_model(const models::VoxelModel& model);

/// Whether the model tells structures from what is around them; boosting trees do.
bool has_background(const models::VoxelModel& model);

/// The classes that label maps hold beside the background, in colours.
LabelTable classes_of(const models::VoxelModel& model);

/// What is evaluated: the probability of the structures together, or maps of a forest.
struct VoxelRequest {
  bool probability = true;
  forest::Wanted maps{};
  pbt::EvaluateConfig trees{};  ///< for boosting trees
  int64_t memory_bytes = 0;     ///< 0: most of what is free

  /// What a forest has to give for it.
  forest::Wanted wanted() const;
};

/// What a model says of an image, on the image's grid; outside of a region as in forest::Results.
struct VoxelMaps : forest::Maps {
  Volume<float> probability;  ///< of the structures together
};

/// A region of interest in model space and on the image's grid; empty: everywhere.
struct Region {
  Volume<uint8_t> in_model_space{}, in_image{};
};

/// Evaluates components in model space and brings the maps to `grid`. Throws MemoryError.
VoxelMaps evaluate_voxels(const models::VoxelModel& model,
                          const std::vector<Volume<int16_t>>& components,
                          const VoxelRequest& request, const Region& region, const Grid& grid,
                          const Context& context);

/// What a slab of an image of this size in model space takes. Throws MemoryError.
int64_t slab_bytes(const models::VoxelModel& model, const Vec3i& size, const VoxelRequest& request,
                   bool roi, const Device& device);

/// The labels of structures: inside of them the likelier class wins, the first of equal ones.
LabelVolume classes_inside(const Volume<uint8_t>& mask, const models::VoxelModel& model,
                           const VoxelMaps& maps);

}  // namespace larch::pipeline
