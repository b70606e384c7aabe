// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/io/markups/markups.h"
#include "larch/models.h"

// Poses of the structures of a hierarchical detection network.
namespace larch {

struct FoundPoses {
  /// By structure, in the order of the model, in LPS mm; the status is "found", "uncertain",
  /// "not found" or "skipped: parent ...".
  std::vector<DetectedPose> poses{};
  std::vector<int32_t> parents{};  ///< by structure: the number of another; -1: none
  StepSeconds seconds{};
};

/// Finds all structures of a network in an image (Sofka et al. 2010; US 2012/0069003 A1). The
/// result does not depend on the device, the number of threads or the share of the GPU. `name`: of
/// the image, for messages. Throws UsageError for a model of another kind, InputError for an image
/// that is too large or too small for it, MemoryError, and Stopped. The image is let go as soon as
/// it has been resampled.
FoundPoses find_poses(const Model& model, Volume<float> image, const Context& context,
                      const std::string& name = "the image");

/// Returns a label map of the boxes on a grid: the voxels whose centres lie in the box of structure
/// k have the value k + 1. Where boxes overlap, a structure goes before the one that it was found
/// in, and otherwise the surer one before the other.
LabelVolume label_boxes(const FoundPoses& found, const Grid& grid, int threads);

/// Returns the same with whole boxes, in as many label maps as overlapping ones need; at least one.
std::vector<LabelVolume> layered_boxes(const FoundPoses& found, const Grid& grid, int threads);

}  // namespace larch
