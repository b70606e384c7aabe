// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/app/outputs/outputs.h"
#include "larch/cases/option_groups.h"
#include "larch/cases/run_cases.h"
#include "larch/io/table/case_list.h"
#include "larch/pipeline/detection/detection_files.h"

namespace larch::pipeline {

/// Detections on many images with one model. Its memory is also that of each evaluation, as in
/// DetectionJob.
using BatchRequest = cases::ImageBatch<Product>;

/// The files of one of its cases.
DetectionFiles files_of(const BatchRequest& request, const Case& c);

/// The run over its cases; `request` must outlive it.
cases::CaseRun run_of(const BatchRequest& request, const CaseWriter& writer);

/// As cases::check_cases; throws UsageError as well if a format cannot be written.
void check_batch(const BatchRequest& request, const CaseWriter& writer = {});

/// Detects on every case as cases::run_cases does it: the files of a case are those of
/// files_of_case and are the same as those of a detection by itself; status.tsv has the figures
/// voxels and volume_ml.
Outputs detect_batch(const pbt::Model& model, const DetectConfig& config,
                     const BatchRequest& request, const CaseWriter& writer, const Context& context);

}  // namespace larch::pipeline
