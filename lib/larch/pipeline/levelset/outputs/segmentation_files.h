// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/fields.h"
#include "larch/data/grid.h"

namespace larch::pipeline {

/// Names of the files of a segmentation; empty: not wanted.
struct SegmentationFiles {
  std::string labels, level_set, distance, mesh, qc, plot;
  /// Level set, distance and mesh are written for each label as well: name_of_label.
  bool by_label = false;

  /// All of them with the flags that name them as roles. Companions are those of `labels`: others
  /// may come when the labels of a label map are known.
  CaseFiles names(const std::vector<int32_t>& labels_known = {}) const;
  bool are_none() const { return names().outputs.empty(); }
};

/// The file of one label beside that of all: "wm.label2.vtk" of "wm.vtk".
std::string name_of_label(const std::string& path, int32_t label);

/// Throws UsageError if one of `paths`, such as an input or a file of another case, is named as the
/// file of some label would be that one of `files` writes. The labels of a label map are not known
/// before it is read.
void check_label_files(const std::vector<SegmentationFiles>& files,
                       const std::vector<std::string>& paths);

/// Files in the folders of `files` that are named as those of labels that are not among `labels`:
/// an earlier run with other labels left them, and they would be taken for results of this one.
std::vector<std::string> files_of_other_labels(const SegmentationFiles& files,
                                               const std::vector<int32_t>& labels);

/// Throws UsageError unless something is wanted and the formats that the endings name can be
/// written.
void check_files(const SegmentationFiles& files);

/// Throws UsageError if an image on this grid does not fit the format of its file. For use before
/// the work.
void check_files_hold(const SegmentationFiles& files, const Grid& grid);

/// What a batch can write for each case.
enum class SegmentationProduct { kLabels, kLevelSet, kDistance, kMesh, kQc, kPlot };
constexpr auto enum_names(SegmentationProduct*) {
  using P = SegmentationProduct;
  return std::to_array<EnumName<P>>({{P::kLabels, "labels"},
                                     {P::kLevelSet, "level-set"},
                                     {P::kDistance, "distance"},
                                     {P::kMesh, "mesh"},
                                     {P::kQc, "qc"},
                                     {P::kPlot, "plot"}});
}

/// The files of case `id` in `folder`: <id>.nii.gz (labels), <id>.phi.nii.gz (level-set),
/// <id>.distance.nii.gz, <id>.vtk (mesh), <id>.png (qc) and <id>.plot.png, with the given endings
/// of images and meshes.
SegmentationFiles segmentation_files_of_case(const std::string& folder, const std::string& id,
                                             const std::vector<SegmentationProduct>& products,
                                             const std::string& image_ending,
                                             const std::string& mesh_ending);

}  // namespace larch::pipeline
