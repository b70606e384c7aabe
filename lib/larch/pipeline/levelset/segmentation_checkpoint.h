// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/levelset/segment.h"
#include "larch/models/container.h"

namespace larch::pipeline {

/// The kinds of container that checkpoints are: of one image, of a time series.
inline constexpr const char *kCheckpointKind = "levelset-checkpoint",
                            *kSeriesCheckpointKind = "levelset-series";

/// Says when a checkpoint is due: every minute, and when the run is to stop.
class CheckpointClock {
 public:
  bool is_due(const Context& context) const;
  void wrote() { last_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Has `write` put a checkpoint under a temporary name and renames it to `path`. Throws
/// OutputError.
void save_checkpoint(const std::string& path, const Context& context,
                     const std::function<void(const std::string&)>& write);

/// What a run that was stopped says of its checkpoint.
std::string stopped_text(const std::string& checkpoint);

std::string digest_of(const std::string& bytes);
/// Of the voxels and the grid.
std::string digest_of(const Volume<float>& image);

/// A digest of all that must be the same when a segmentation goes on: voxels and grids of its
/// images, seeds and configuration. Not the device, nor the number of threads, nor what says when
/// it ends (max_iterations; without a region term unchanged_labels, most_changed, rms and
/// max_volume_ml as well).
std::string fingerprint_of(const levelset::SegmentRequest& request);

/// The fingerprint in a checkpoint of any kind, with the version of the arithmetic that wrote it.
/// The second throws InputError where that is not levelset::kArithmeticVersion: the run would go on
/// to bits that no version gives.
void put_fingerprint(const std::string& fingerprint, models::Container& container);
std::string take_fingerprint(const models::Container& container);

/// Throws InputError unless the two are the same.
void require_fingerprint(const std::string& found, const std::string& expected);

/// What a checkpoint of a request can hold, known before it is read.
struct CheckpointShape {
  size_t bricks = 0;  ///< of each field
  size_t labels = 0;  ///< at most
};
CheckpointShape shape_of(const levelset::SegmentRequest& request);

/// The fields of a checkpoint of any kind, a section each. The second throws InputError, before
/// memory is taken for what is not of this shape.
void put_fields(const std::vector<levelset::FieldSnapshot>& fields, models::Container& container);
std::vector<levelset::FieldSnapshot> take_fields(const models::Container& container,
                                                 const CheckpointShape& shape);

/// levelset::restore; InputError names the file that the fields are from.
void go_on_from(const std::string& path, levelset::SegmentRun& run,
                std::vector<levelset::FieldSnapshot> fields, const Context& context);

/// Writes a segmentation on its way to `path`, whole or not at all: a container of the kind
/// "levelset-checkpoint" (larch/models/container.h) with a section per field. Bricks whose voxels
/// have one value are stored as that, and of the second buffer what differs from the first. Throws
/// OutputError.
void write_checkpoint(const std::string& path, const std::string& fingerprint,
                      const std::vector<levelset::FieldSnapshot>& fields);

/// Reads it back. Throws InputError where the file is damaged or of other inputs or settings.
std::vector<levelset::FieldSnapshot> read_checkpoint(const std::string& path,
                                                     const std::string& fingerprint,
                                                     const CheckpointShape& shape);

}  // namespace larch::pipeline
