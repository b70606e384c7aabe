// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/rgb_image.h"
#include "larch/data/volume.h"
#include "larch/picture/draw.h"

namespace larch::picture {

struct QcOptions {
  int min_width = 900;               ///< pixels; slices are enlarged until the picture is this wide
  int most_height = kMaximumPixels;  ///< of the picture, where a pixel per voxel is no more
  double window_low = 0.005;         ///< share of the voxels that become black
  double window_high = 0.995;        ///< 1 - share of the voxels that become white
  LabelTable colours{};              ///< colours by label value; others get a built-in palette
  /// Drawn in white below the contours of the labels; may be null.
  const LabelVolume* reference = nullptr;
};

/// Three orthogonal slices side by side, each where the labels (or else the reference) cover the
/// largest area; through the middle of the volume if there is no label. They are the index planes
/// nearest to axial, coronal and sagittal, with square pixels. Axial slices are seen from the feet,
/// coronal ones from the front, sagittal ones from the patient's left; letters at the borders name
/// the patient's right, left, anterior, posterior, superior and inferior, from the direction
/// matrix; there are none if the frame of the grid is unknown. Contours are
/// those of draw_contours. A 2-D volume gives one slice. The picture is at least min_width and at
/// most 4096 pixels wide and high, if the volume allows both. Throws InputError if the grids differ
/// or the image is empty.
RgbImage qc_picture(const Volume<float>& image, const LabelVolume& labels,
                    const QcOptions& options = {});

/// Pictures one below the other, each with its title above it. Throws UsageError if they do not fit
/// kMaximumPixels.
RgbImage stacked(std::span<const RgbImage> pictures, std::span<const std::string> titles);
/// How many pictures of this height fit.
int most_stacked(int height);

/// A structure of pose_picture.
struct PoseRow {
  std::string name{}, status{};  ///< above its slices
  Rgb colour = kWhite, status_colour = kWhite;
  std::optional<Pose> pose{};  ///< world, LPS mm
};

/// Returns a row for each structure: its name, its status and, where it has a pose, the three
/// slices through its centre (or the nearest ones of the image), as qc_picture has them, with its
/// centre, its long axis and the edges of its box as seen through the slice. Without any pose the
/// slices through the middle follow. All slices have one scale, in which the picture is about 900
/// pixels wide, or less where many rows would exceed its height. `title` stands on top. Throws
/// InputError if the image is empty.
RgbImage pose_picture(const Volume<float>& image, const std::string& title,
                      std::span<const PoseRow> rows);

/// A surface of surface_picture and the words above it.
struct SurfaceTile {
  Mesh surface;
  std::string title;
};

/// Shaded surfaces in rows of `columns`, all in one scale, each about its own middle, seen along y
/// (of LPS axes: from the front, with the patient's left on the right side).
RgbImage surface_picture(std::span<const SurfaceTile> tiles, int columns);

}  // namespace larch::picture
