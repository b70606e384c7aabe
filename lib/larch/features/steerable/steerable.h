// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/features/steerable/steerable_set.h"
#include "larch/learning/feature_source.h"
#include "larch/learning/stored_codes.h"

namespace larch::features {

const char* to_string(SteerableType type);

/// All features of a set: at each level each type at each of the first `points` points;
/// kVertexPoints for frames of vertices.
std::vector<SteerableFeature> steerable_pool(SteerableSet set, int points = kPatternPoints);

/// Images of levels `level` to `level` + kSteerableLevels - 1, all of which are there, as features
/// see them; `unit`: the largest integer of the intensity rule.
SteerableImages steerable_images(const std::vector<image::LevelImage>& levels, int level, int unit);

/// Returns the feature source of a functor's columns at samples; where `response` points to lies on
/// `device`. The CPU's is learning::ResponseSource.
std::unique_ptr<learning::FeatureSource> make_steerable_source(const SteerableResponse& response,
                                                               size_t columns,
                                                               const Device& device);
namespace cuda {
std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device& device);
}

/// An image at the resolutions that features choose from, on one device.
struct ResidentImages {
  std::vector<image::LevelImage> levels;
  SteerableImages views;
};

/// Frames in several images, of which one is in memory at a time: those of image i are first[i] to
/// first[i + 1] - 1. `load` gives an image on context.device.
struct FramesOfImages {
  std::span<const SteerableFrame> frames;
  std::span<const size_t> first;  ///< one more than images
  std::function<ResidentImages(size_t image)> load;
};

/// Returns the code maps of the features of a pool, from frames of a few images that are drawn by
/// hash.
std::vector<learning::CodeMap> range_frames(const FramesOfImages& all,
                                            const std::vector<SteerableFeature>& pool,
                                            const Context& context);

/// The codes of all features at all frames: a matrix for each image, and the source whose samples
/// are the frames.
struct FrameCodes {
  std::vector<learning::FeatureMatrix> matrices;
  Buffer<learning::StoredRow> rows;
  std::unique_ptr<learning::FeatureSource> source;
};
/// Throws Stopped after an image.
FrameCodes fill_frames(const FramesOfImages& all, const std::vector<SteerableFeature>& pool,
                       std::span<const learning::CodeMap> maps, const Context& context);

}  // namespace larch::features
