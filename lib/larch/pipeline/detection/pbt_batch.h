// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
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
};

/// Throws UsageError (formats, two files of one name, an output that would replace an input) or
/// InputError (an id that cannot be a file name).
void check_batch(const BatchRequest& request);
/// Throws OutputError as well if an output of a case is there that may not be replaced.
void check_batch(const BatchRequest& request, const CaseWriter& writer);

/// The files of one of its cases.
DetectionFiles files_of(const BatchRequest& request, const Case& c);

/// What is to be done about one of its cases. The label table has no record of its own: where it is
/// missing, not all outputs are there.
EarlierOutputs earlier_of(const BatchRequest& request, const Case& c, const CaseWriter& writer);

/// Detects on every case; the files of a case are those of files_of_case and are the same as those
/// of a detection by itself. Reading and writing of other cases go on while one is computed (in
/// threads beside those of `context`; with one thread on the CPU all goes one after the other).
///
/// The folder gets status.tsv: id, status (ok, rejected, failed, skipped), message, seconds,
/// voxels, volume_ml, ended, with the rows of all runs into the folder (status_table.h). A case
/// that fails does not stop the others; a failure of the device does. Throws Stopped when the stop
/// flag of `context` is set, after the cases that are being computed or written.
Outputs detect_batch(const pbt::Model& model, const DetectConfig& config,
                     const BatchRequest& request, const CaseWriter& writer, const Context& context);

}  // namespace larch::pipeline
