// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/features/haar.h"
#include "larch/image/integral.h"
#include "larch/voxels/samples.h"
#include "larch/voxels/train_config.h"

namespace larch::voxels {

/// Returns the channels of a configuration: each kind at each pyramid level, kinds outermost.
std::vector<image::ChannelSpec> channel_specs(const FeatureConfig& config, size_t components = 1);

/// Returns what a model has that is trained so, without what is measured.
ImageModel start_image_model(const TrainConfig& config, const image::ModelSpace& space,
                             std::span<const TrainingVolume> volumes, uint64_t seed);

/// Returns the pool of features on these channels. Throws UsageError for one whose sums leave 32
/// bits.
std::vector<features::HaarFeature> make_pool(const TrainConfig& config,
                                             std::span<const image::ChannelSpec> channels,
                                             uint64_t seed);

/// Throws UsageError for what `train` would refuse in a configuration whatever the volumes are: an
/// empty intensity window, a feature of the pool (drawn with `seed`) whose sums leave 32 bits.
void check_config(const TrainConfig& config, uint64_t seed);

/// Throws UsageError for a name with control characters: it would stand in models and tables.
void check_name(const std::string& name);

/// Returns what keys that are null are where nothing is fitted to volumes.
TrainConfig with_constants(TrainConfig config);

}  // namespace larch::voxels
