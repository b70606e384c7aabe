// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "larch/data/volume.h"
#include "larch/levelset/segment.h"

namespace larch::pipeline {

/// A series on its way.
struct SeriesProgress {
  std::vector<LabelVolume> labels{};  ///< of the frames that are finished
  std::string reports = "[]";         ///< on them, a JSON list
  double volume_ml = 0;               ///< of all frames together
  double iterations = 0;
  /// What next_frame takes of the frame before: labels with their level sets and windows.
  levelset::SegmentResult last{};
  /// Of the frame that is moved; none: it has not begun.
  std::vector<levelset::FieldSnapshot> fields{};
};

/// What next_frame takes of a result, and no more; labels that have vanished since `before`, the
/// result of the frame before, stay without anything inside.
levelset::SegmentResult kept_of(const levelset::SegmentResult& result,
                                const levelset::SegmentResult& before);

/// Writes a series to `path`, whole or not at all: a container of the kind "levelset-series".
/// Throws OutputError.
void write_series_checkpoint(const std::string& path, const std::string& fingerprint,
                             const SeriesProgress& progress);

/// A series with the fingerprint that was written beside it.
struct StoredSeries {
  std::string fingerprint;
  SeriesProgress progress{};
};
/// Reads it back; its volumes lie on `grid`, and it has less than `frames` finished frames and at
/// most `labels` labels. Throws InputError where the file is damaged or of another kind of image.
StoredSeries read_series_checkpoint(const std::string& path, const Grid& grid, int frames,
                                    size_t labels);

}  // namespace larch::pipeline
