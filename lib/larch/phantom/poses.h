// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {

struct PosesConfig {
  std::array<int, 3> size{96, 96, 96};
  std::array<double, 3> spacing_mm{1, 1, 1};
  int structures = 1;
  int distractors = 0;
  bool balls = true;
  double object_scale = 1;
  std::array<double, 2> scale{0.8, 1.2};
  double rotation_deg = 30;
  double shift_mm = 40;
  double relative_sigma_mm = 2;
  double relative_sigma_deg = 5;
  double snr = 5;
  template <class F>
  void fields(F&& f) {
    f(Field{"size", size, "voxels along x, y and z", 16, 1024},
      Field{"spacing_mm", spacing_mm, "voxel size along x, y and z", 0.05, 50},
      Field{"structures", structures,
            "objects with a label; those after the first are half as large and go with it", 1, 9},
      Field{"distractors", distractors,
            "copies of each object after the first, without label, at other places", 0, 10},
      Field{"balls", balls, "a ball at two ends of each object, by which its poses can be told"},
      Field{"object_scale", object_scale, "factor of all objects and of what lies between them",
            0.05, 100},
      Field{"scale", scale, "least and largest factor by which the size of an object varies", 0.1,
            10},
      Field{"rotation_deg", rotation_deg,
            "largest angle by which the first object and each distractor is turned", 0, 180},
      Field{"shift_mm", shift_mm,
            "largest shift of the first object along each axis, as far as the volume has room", 0,
            1e5},
      Field{"relative_sigma_mm", relative_sigma_mm,
            "standard deviation of the others' places along each axis of the first object", 0, 1e3},
      Field{"relative_sigma_deg", relative_sigma_deg,
            "standard deviation of the others' turns about each axis of the first object", 0, 180},
      Field{"snr", snr, "contrast of the objects over the standard deviation of the noise", 0.1,
            1e6});
  }
};

/// An object: its box, whose edges are the axes of the ellipsoid, and the label of its voxels, from
/// 1; 0: a distractor.
struct PlacedObject {
  Pose pose;
  int32_t label = 0;
};

using PosesCase = Sample<Volume<int16_t>>;

/// Throws UsageError for a range of scales that is upside down, or distractors of nothing.
void check(const PosesConfig& config);

/// The objects of case `number` in world coordinates (LPS mm, the volume's centre is the origin):
/// those with labels in their order, then the distractors. With their balls they lie inside the
/// volume, and no boxes around them touch. Only (config, seed, number) count; README.md of this
/// room says how they are drawn. Throws UsageError as check() does, and if there is no room for
/// them.
std::vector<PlacedObject> place_objects(const PosesConfig& config, uint64_t seed, int number);

/// Returns the image of place_objects: bright ellipsoids with balls at the ends of two axes, with
/// partial volume, in smoothed and in white noise, on a grid with axes LPS. A label is that of the
/// ellipsoid, without the balls. Every voxel depends on (config, seed, number, voxel) alone and is
/// computed without functions that differ between mathematical libraries. Throws as place_objects,
/// and MemoryError if the volume does not fit.
PosesCase make_poses(const PosesConfig& config, uint64_t seed, int number, int threads);

/// Names (object_1, ...) and colours of the labels of make_poses.
LabelTable poses_label_table(int structures);

}  // namespace larch::phantom
