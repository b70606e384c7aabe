// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/features/steerable/steerable.h"
#include "larch/learning/stored_codes.h"

namespace larch::features {

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

/// The code maps of the features of a pool, from frames of a few images that are drawn by hash.
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
