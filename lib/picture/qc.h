// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/core/mesh.h"
#include "larch/core/rgb_image.h"
#include "larch/core/volume.h"

namespace larch::picture {

struct QcOptions {
  int min_width = 900;         ///< pixels; slices are enlarged until the picture is this wide
  double window_low = 0.005;   ///< share of the voxels that become black
  double window_high = 0.995;  ///< 1 - share of the voxels that become white
  LabelTable colours{};        ///< colours by label value; others get a built-in palette
  const LabelVolume* reference = nullptr;  ///< drawn in white below the labels' contours
};

/// Three orthogonal slices side by side through the middle of the labelled structure (the middle of
/// the volume if there is no label), in the index planes that are nearest to axial, coronal and
/// sagittal, with square pixels. Axial slices are seen from the feet, coronal ones from the front,
/// sagittal ones from the patient's left; letters name the patient's R L A P S I at the borders,
/// from the direction matrix. Contours are one pixel wide. A 2-D volume gives one slice.
/// Throws InputError if the grids differ or the image is empty.
RgbImage qc_picture(const Volume<float>& image, const LabelVolume& labels,
                    const QcOptions& options = {});

}  // namespace larch::picture
