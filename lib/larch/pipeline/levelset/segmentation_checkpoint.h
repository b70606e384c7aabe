// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/levelset/segment.h"

namespace larch::pipeline {

/// A digest of all that must be the same when a segmentation goes on: voxels and grids of its
/// images, seeds and configuration. Not the device, nor the number of threads, nor what says when
/// it ends (max_iterations; without a region term unchanged_labels, most_changed, rms and
/// max_volume_ml as well).
std::string fingerprint_of(const levelset::SegmentRequest& request);

/// Writes a segmentation on its way to `path`, whole or not at all: a container of the kind
/// "levelset-checkpoint" (larch/models/container.h) with a section per field. Bricks whose voxels
/// have one value are stored as that, and of the second buffer what differs from the first. Throws
/// OutputError.
void write_checkpoint(const std::string& path, const std::string& fingerprint,
                      const std::vector<levelset::FieldSnapshot>& fields);

/// Reads it back. Throws InputError where the file is damaged or of other inputs or settings.
std::vector<levelset::FieldSnapshot> read_checkpoint(const std::string& path,
                                                     const std::string& fingerprint);

}  // namespace larch::pipeline
