// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/features/haar.h"
#include "larch/features/linear/linear_source.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/train.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/train_config.h"

namespace larch::pbt {

/// Holds what all trees of a run are grown from: volumes, samples and where their features come
/// from.
struct Material {
  const TrainConfig& config;
  TrainingImages& images;
  const std::vector<features::HaarFeature>& pool;
  SampleSet& samples;  ///< a tree's mined ones are appended while it grows
  const SampleSet& held_out;
  features::LinearSource& source;                 ///< of samples
  const features::LinearSource& held_out_source;  ///< of held_out
  std::span<const learning::CodeMap> maps;        ///< of the columns
  /// Says how often each volume counts for each tree of an ensemble; empty without bootstrap.
  const std::vector<std::vector<uint32_t>>& occurrences;

  size_t trees() const;
};

/// Draws the volumes of all trees of an ensemble; nothing without bootstrap. Throws InputError
/// where a tree cannot be given both classes, or the masses of its samples do not fit 64 bits.
std::vector<std::vector<uint32_t>> draw_volumes_of_trees(std::span<const size_t> train_volumes,
                                                         size_t all_volumes,
                                                         const SampleSet& samples,
                                                         const TrainConfig& config, uint64_t seed);

/// Grows all trees; `start` says all but the trees. Each tree is pruned on the held-out samples if
/// the configuration says so, and each finished node is offered to the hooks.
Model grow_trees(Material& material, const Model& start, const TrainHooks& hooks,
                 const Context& context);

}  // namespace larch::pbt
