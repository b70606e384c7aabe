// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/pbt/model.h"
#include "larch/voxels/samples.h"

namespace larch::perf {

/// Bright blobs of about a fifth of the volume on 0..1023, under strong noise; the classes follow
/// the blobs with a share of them swapped, so that no node of a tree gets pure. Depends on `size`
/// and `number` alone.
voxels::TrainingVolume noise_and_blobs(const Vec3i& size, int number);

/// A tree of depth 6 with 40 to 48 weak classifiers in each of its 63 inner nodes, window 17: the
/// shape of the trees in US 2012/0069003 A1 (paragraph 89), on one channel of intensity at `levels`
/// pyramid levels. Trained within seconds on blobs, and the same for every caller. The reference of
/// the evaluation figures.
struct SyntheticTree {
  int depth = 6;
  int levels = 1;
};
pbt::Model synthetic_model(const SyntheticTree& spec = {});

/// A single node of 40 weak classifiers on pairs of boxes, 16 taps each.
pbt::Model single_classifier();

/// Taps that Algorithm 2 reads at a voxel, mean over some hundred voxels spread over the image.
double taps_per_voxel(const pbt::Model& model, const Volume<int16_t>& image);

/// cpu with all threads, cpu with one, and cuda:0 if there is one.
struct Place {
  std::string name;
  Context context;
};
std::vector<Place> places();

}  // namespace larch::perf
