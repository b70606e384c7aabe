// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/outputs/outputs.h"
#include "larch/cases/option_groups.h"
#include "larch/cases/run_cases.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// Segmentations of many images.
struct SegmentationBatch {
  cases::ImageBatch<SegmentationProduct> images;
  SegmentationRequest each;  ///< without what a case has of its own

  SegmentationRequest request_of(const Case& c) const;
  /// The batch must outlive it.
  cases::CaseRun run(const CaseWriter& writer) const;
};

/// As cases::check_cases; throws UsageError as well if a format cannot be written, InputError if a
/// case has nothing to start from.
void check_batch(const SegmentationBatch& batch, const CaseWriter& writer = {});

/// Segments every case as cases::run_cases does it: the files of a case are those of
/// segmentation_files_of_case and are the same as those of a segmentation by itself. On a GPU the
/// cases that are read move in one launch, as many as its memory holds.
Outputs segment_batch(const SegmentationBatch& batch, const levelset::LevelsetConfig& config,
                      const CaseWriter& writer, const Context& context);

}  // namespace larch::pipeline
