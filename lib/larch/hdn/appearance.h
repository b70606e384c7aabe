// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/image/levels.h"
#include "larch/pose/correction.h"

namespace larch::hdn {

constexpr int kAppearanceSide = 24;
constexpr size_t kAppearancePoints = size_t{kAppearanceSide} * kAppearanceSide * kAppearanceSide;

/// Holds what a structure looks like in the mean, on a grid about its box, and how far the pose
/// nearby at which an image looks most like it is to be believed.
struct Appearance {
  pose::RelativePose gains{};     ///< shares of the change that fits best, 0 to 1
  std::vector<int32_t> mean{};    ///< 1/1024 of the deviation of a case, x fastest; may be empty
  std::vector<int32_t> weight{};  ///< of each point of the grid; 0 at its border

  bool exists() const { return !mean.empty(); }
};

/// An image at the finest level, not empty.
struct FinestImage {
  const Volume<int16_t>* voxels = nullptr;
  image::ImageExtent extent{};
};

/// Returns the pose of a structure (mm along the axes of the grid of the image), moved from where
/// it was found to where the image looks more like it. Points outside of the image do not count;
/// the pose is left as it is where most of them are outside.
Pose refined_pose(const Appearance& appearance, const FinestImage& image, const Pose& found);

/// Learns an appearance from cases and the poses at which they were found by what had not learned
/// from them. There is none with one fold, or with few cases. `mean_distance_mm`: of the mean
/// shape; empty: the ellipsoid in the box stands for it. Each of `poses` becomes what it is refined
/// to by what is learned from the other folds, with the gains of all.
Appearance learn_appearance(const std::vector<FinestImage>& images,
                            const pose::CorrectionCases& cases,
                            const Volume<float>& mean_distance_mm, std::vector<Pose>& poses,
                            const Context& context);

}  // namespace larch::hdn
