// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/volume.h"
#include "larch/pbt/model.h"
#include "larch/pbt/samples.h"

namespace larch::perf {

/// Bright blobs of about a fifth of the volume on 0..1023, under strong noise; the classes follow
/// the blobs with a share of them swapped, so that no node of a tree gets pure. Depends on `size`
/// and `number` alone.
pbt::TrainingVolume noise_and_blobs(const Vec3i& size, int number);

/// A tree of depth 6 with 40 to 48 weak classifiers in each of its 63 inner nodes, one channel of
/// intensity at two pyramid levels, window 17: the shape of the trees in the seeds. Trained within
/// seconds on blobs, and the same for every caller.
pbt::Model synthetic_model();

/// cpu with all threads, cpu with one, and cuda:0 if there is one.
struct Place {
  std::string name;
  Context context;
};
std::vector<Place> places();

}  // namespace larch::perf
