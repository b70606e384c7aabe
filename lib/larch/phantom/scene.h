// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/data/mesh.h"
#include "larch/data/rgb_image.h"
#include "larch/phantom/sample_volumes.h"

namespace larch::phantom {

using Scene = Sample<RgbImage>;

/// Returns a picture of 320 x 213 pixels with regions of random shape, of which pairs have one
/// colour and differ by texture (README.md of this room); 0 is void, near a border between regions.
/// Every pixel depends on (seed, number, pixel) alone and is computed without functions that differ
/// between mathematical libraries.
Scene make_scene(uint64_t seed, int number, int threads);

/// Names and colours of the labels of make_scene.
LabelTable scene_label_table();

}  // namespace larch::phantom
