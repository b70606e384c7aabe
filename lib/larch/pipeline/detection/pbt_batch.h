// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/run_cases.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/pipeline/detection/detection_files.h"

namespace larch::pipeline {

/// Detections on many images with one model.
struct BatchRequest {
  std::vector<Case> cases;
  std::string folder;  ///< exists
  std::vector<Product> products{Product::kLabels};
  std::string image_ending = ".nii.gz";
  std::string mesh_ending = ".vtk";
  ReadOptions read;
  /// As in DetectionJob; if given, also what the cases in flight may take on the host together,
  /// unless one takes more by itself.
  int64_t memory_bytes = 0;
  std::vector<std::string> carried{};  ///< columns of the list that go to status.tsv
};

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
