// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/features/steerable/steerable_set.h"
#include "larch/learning/feature_source.h"

namespace larch::features {

const char* to_string(SteerableType type);

/// All features of a set: at each level each type at each of the first `points` points;
/// kVertexPoints for frames of vertices.
std::vector<SteerableFeature> steerable_pool(SteerableSet set, int points = kPatternPoints);

/// Images of levels `level` to `level` + kSteerableLevels - 1, all of which are there, as features
/// see them; `unit`: the largest integer of the intensity rule.
SteerableImages steerable_images(const std::vector<image::LevelImage>& levels, int level, int unit);

/// The feature source of a functor's columns at samples; where `response` points to lies on
/// `device`. The CPU's is learning::ResponseSource.
std::unique_ptr<learning::FeatureSource> make_steerable_source(const SteerableResponse& response,
                                                               size_t columns,
                                                               const Device& device);
namespace cpu {
std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device& device);
}
namespace cuda {
std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device& device);
}

}  // namespace larch::features
