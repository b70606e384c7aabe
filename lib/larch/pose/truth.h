// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"

namespace larch::pose {

/// The origin of the axes of a structure's box.
enum class OrientationKind : uint8_t {
  kFit = 0,   ///< the similarity that brings the case onto the mean shape of all cases
  kNone = 1,  ///< the axes of the world: structures without an orientation of their own
};
constexpr auto enum_names(OrientationKind*) {
  return std::to_array<EnumName<OrientationKind>>(
      {{OrientationKind::kFit, "fit"}, {OrientationKind::kNone, "none"}});
}

/// The box of a structure in one case.
struct CasePose {
  Pose pose;
  double residual_mm = 0;  ///< mean distance of its surface from the mean shape's; 0 with kNone
  bool touches_border = false;  ///< of its image, so that a part may be missing
};

/// A rotation that takes a shape, nearly, onto itself.
struct Symmetry {
  Quaternion rotation;
  double distance_mm = 0;  ///< mean distance of the turned surface from the shape's
};

/// The poses of a structure in n cases.
struct PoseTruth {
  std::vector<CasePose> cases;
  /// Signed distances (mm, negative inside) of the mean shape, in its own frame: an isotropic grid
  /// along the box axes, whose size is the geometric mean of the cases'. Empty with kNone.
  Volume<float> mean_distance_mm;
  /// Holds those of the 23 rotations that permute the axes, about the middle of the mean shape's
  /// box, that move its surface by no more than the cases differ from it, in the mean: where there
  /// are any, the rotation of a pose is one of several.
  std::vector<Symmetry> symmetries;
};

/// Returns the voxels of some labels (1; else 0), on the part of the grid that holds them and a
/// margin of three voxels; empty if there are none.
Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values);

/// Returns the largest component of a structure, its holes filled, on the part of the grid with it;
/// no values: all labels but 0. Empty if there is none.
Volume<uint8_t> structure_mask(const LabelVolume& labels, std::span<const int32_t> values);

/// Throws InputError for a mask of too few voxels for a pose. `name`: what the message calls it.
void check_mask(const Volume<uint8_t>& mask, const std::string& name);

/// Returns the poses of the structure that the masks (at least one, each on its own grid, not 0
/// inside) show.
///
/// With kFit the surface of each case is fitted to the mean signed distance of all cases by a
/// similarity x = c + s R m that makes the squares of the distances, in mm of the world, least;
/// mean and fits take turns, after a first fit to the case of median volume. Each time the frame of
/// the mean shape is turned and scaled so that the mean of the R is the identity and that of the
/// log s 0. Box axis k is column k of R, and the box holds the case's own surface, tightly. The
/// search finds orientations up to about 40 degrees from that of the mean shape, the first time
/// from that of the case with the median volume, and takes none beyond 60 degrees.
///
/// The result does not depend on context.threads. Throws InputError for a mask of fewer than 8
/// voxels, with its number counted from 0, and where the mean shape of a thin structure has no
/// inside; Stopped.
PoseTruth fit_poses(std::span<const Volume<uint8_t>> masks, OrientationKind kind,
                    const Context& context);

/// The pose of one further case, by its fit to the mean shape that fit_poses made of others; an
/// empty one stands for kNone. Throws InputError for a mask of fewer than 8 voxels.
CasePose fit_pose(const Volume<uint8_t>& mask, const Volume<float>& mean_distance_mm);

}  // namespace larch::pose
