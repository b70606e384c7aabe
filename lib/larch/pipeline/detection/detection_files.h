// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/fields.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/detection/pbt_detection.h"

namespace larch::pipeline {

/// Names of the files of a detection; empty: not wanted.
struct DetectionFiles {
  std::string labels, probability, mesh, qc, candidates;

  /// The label table beside the label map: seg.nii.gz -> seg.tsv. Empty without a label map.
  std::string table() const;
  /// The label table is not in it: it comes and goes with the label map.
  std::vector<std::string> all() const;
  /// All of them with the flags that name them as roles, and the table as a companion.
  CaseFiles names() const;
  Wanted wanted() const;
};

/// Throws UsageError unless something is wanted and the formats that the endings name can be
/// written.
void check_files(const DetectionFiles& files);

/// Throws UsageError if an image on this grid does not fit the format of its file. For use before
/// the work.
void check_files_hold(const DetectionFiles& files, const Grid& grid);

/// What a batch can write for each case.
enum class Product { kLabels, kProbability, kMesh, kQc, kCandidates };
constexpr auto enum_names(Product*) {
  return std::to_array<EnumName<Product>>({{Product::kLabels, "labels"},
                                           {Product::kProbability, "probability"},
                                           {Product::kMesh, "mesh"},
                                           {Product::kQc, "qc"},
                                           {Product::kCandidates, "candidates"}});
}

/// The files of case `id` in `folder`: <id>.nii.gz (labels), <id>.probability.nii.gz, <id>.vtk
/// (mesh), <id>.png (qc) and <id>.candidates.tsv, with the given endings of images and meshes.
DetectionFiles files_of_case(const std::string& folder, const std::string& id,
                             const std::vector<Product>& products, const std::string& image_ending,
                             const std::string& mesh_ending);

/// Reads the image of a job, and its region of interest unless `roi` is empty. Throws InputError;
/// also if the two are on different grids.
void read_input(const std::string& image, const std::string& roi, const ReadOptions& options,
                DetectionJob& job);

/// One detection, before it is done.
struct DetectionRequest {
  std::string image, roi;  ///< no region of interest: empty
  DetectionFiles files;
  ReadOptions read;
  int64_t memory_bytes = 0;  ///< as in DetectionJob
};

/// Reads an image and detects on it; the outputs are the files that are asked for. Throws as
/// read_input, check_files_hold and detect do.
Outputs detect_on_image(const pbt::Model& model, const DetectConfig& config,
                        const DetectionRequest& request, const Context& context);

/// The files and figures of a finished detection of `input`. Rejected if fewer than
/// structure.min_voxels voxels were found. `threads` write.
Outputs detection_outputs(const pbt::Model& model, const DetectConfig& config,
                          const DetectionFiles& files, const std::string& input,
                          const std::shared_ptr<const DetectionJob>& job, int threads);

}  // namespace larch::pipeline
