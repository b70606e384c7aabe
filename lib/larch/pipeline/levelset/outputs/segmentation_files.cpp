// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/outputs/segmentation_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::pipeline {
namespace {

/// "wm.vtk" of "wm.label2.vtk": what name_of_label makes it of. Empty where it is no such name.
std::string without_label(const std::string& path) {
  static constexpr std::string_view kMark = ".label";
  const std::string ending = file_extension(path);
  const std::string stem = path.substr(0, path.size() - ending.size());
  const size_t at = stem.rfind(kMark);
  if (at == std::string::npos || at + kMark.size() == stem.size()) return "";
  const bool is_number = stem.find_first_not_of("0123456789", at + kMark.size()) == stem.npos;
  return is_number ? stem.substr(0, at) + ending : "";
}

}  // namespace

CaseFiles SegmentationFiles::names(const std::vector<int32_t>& labels_known) const {
  CaseFiles names;
  for (const CaseOutput& output : {CaseOutput{labels, "output"}, CaseOutput{level_set, "level-set"},
                                   CaseOutput{distance, "distance"}, CaseOutput{mesh, "mesh"},
                                   CaseOutput{qc, "qc"}, CaseOutput{plot, "plot"}}) {
    if (!output.path.empty()) names.outputs.push_back(output);
  }
  for (const std::string& path : {level_set, distance, mesh}) {
    if (!by_label || path.empty()) continue;
    for (const int32_t label : labels_known) names.companions.push_back(name_of_label(path, label));
  }
  return names;
}

std::string name_of_label(const std::string& path, int32_t label) {
  const std::string ending = file_extension(path);
  return path.substr(0, path.size() - ending.size()) + ".label" + std::to_string(label) + ending;
}

void check_label_files(const std::vector<SegmentationFiles>& files,
                       const std::vector<std::string>& paths) {
  std::set<std::string> divided;
  for (const SegmentationFiles& one : files) {
    for (const std::string& path : {one.level_set, one.distance, one.mesh}) {
      if (one.by_label && !path.empty()) divided.insert(resolved_name(path));
    }
  }
  for (const std::string& path : paths) {
    const std::string of_all = without_label(path);
    if (of_all.empty() || divided.count(resolved_name(of_all)) == 0) continue;
    throw UsageError("--by-label: '" + path + "' may be the file of a label beside '" + of_all +
                     "', and would be replaced; choose other names");
  }
}

std::vector<std::string> files_of_other_labels(const SegmentationFiles& files,
                                               const std::vector<int32_t>& labels) {
  std::vector<std::string> found;
  if (!files.by_label) return found;
  for (const std::string& path : {files.level_set, files.distance, files.mesh}) {
    if (path.empty()) continue;
    std::set<std::string> own;
    for (const int32_t label : labels) own.insert(resolved_name(name_of_label(path, label)));
    std::error_code error;
    std::filesystem::directory_iterator at(folder_of(path), error);
    for (; !error && at != std::filesystem::directory_iterator{}; at.increment(error)) {
      const std::string there = at->path().string(), of_all = without_label(there);
      if (of_all.empty() || resolved_name(of_all) != resolved_name(path)) continue;
      if (!own.contains(resolved_name(there))) found.push_back(there);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void check_files(const SegmentationFiles& files) {
  if (files.are_none()) {
    throw UsageError(
        "nothing to write: give --output, --level-set, --distance, --mesh, --qc or --plot");
  }
  if (files.by_label && files.level_set.empty() && files.distance.empty() && files.mesh.empty()) {
    throw UsageError(
        "--by-label is for --level-set, --distance and --mesh (with --list: --write level-set, "
        "distance, mesh); the label map of --output has all labels");
  }
  for (const std::string& path : {files.labels, files.level_set, files.distance}) {
    if (!path.empty()) require_image_extension(path);
  }
  if (!files.mesh.empty()) require_mesh_extension(files.mesh);
  if (!files.qc.empty()) require_png_extension(files.qc, "--qc");
  if (!files.plot.empty()) require_png_extension(files.plot, "--plot");
}

void check_files_hold(const SegmentationFiles& files, const Grid& grid) {
  for (const std::string& path : {files.labels, files.level_set, files.distance}) {
    if (!path.empty()) require_image_holds(path, grid.size);
  }
}

SegmentationFiles segmentation_files_of_case(const std::string& folder, const std::string& id,
                                             const std::vector<SegmentationProduct>& products,
                                             const std::string& image_ending,
                                             const std::string& mesh_ending) {
  using P = SegmentationProduct;
  const std::string stem = folder + (folder.ends_with('/') ? "" : "/") + id;
  const auto has = [&](P product) {
    return std::find(products.begin(), products.end(), product) != products.end();
  };
  SegmentationFiles files;
  if (has(P::kLabels)) files.labels = stem + image_ending;
  if (has(P::kLevelSet)) files.level_set = stem + ".phi" + image_ending;
  if (has(P::kDistance)) files.distance = stem + ".distance" + image_ending;
  if (has(P::kMesh)) files.mesh = stem + mesh_ending;
  if (has(P::kQc)) files.qc = stem + ".png";
  if (has(P::kPlot)) files.plot = stem + ".plot.png";
  return files;
}

}  // namespace larch::pipeline
