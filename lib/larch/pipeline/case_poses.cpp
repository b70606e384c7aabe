// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/case_poses.h"

#include <algorithm>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/evaluation/pairs.h"

namespace larch::pipeline {

void check_poses(const InputList& poses, bool is_list) {
  if (!poses || is_folder(poses) == is_list) return;
  throw UsageError(is_list ? "--poses: with --list give the folder of a run of hdn-detect, or the "
                             "list a column 'poses' with the files"
                           : "--poses: '" + poses.path + "' is a folder, which goes with --list");
}

void complete_poses(const InputList& folder, Case& c) {
  if (folder) c.further[kPosesColumn] = prediction_in(folder, c.id, PredictionKind::kPoses);
}

void complete_labels(const InputImage& folder, Case& c) {
  if (folder) c.label = prediction_in(folder, c.id, PredictionKind::kLabels);
}

std::string poses_file(const cases::CaseJob& c, const InputList& given) {
  const std::string path = c.is_of_list ? c.row.cell(kPosesColumn) : given.path;
  const std::string why = path.empty() || path == "n/a" ? "" : why_missing(path);
  if (!why.empty()) throw InputError("the poses of the case: '" + path + "' " + why);
  return path == "n/a" ? "" : path;
}

namespace {

/// Does what boxes_in_file does with the poses of the file.
std::vector<std::optional<Pose>> boxes_among(const std::vector<DetectedPose>& poses,
                                             const std::string& path, const LabelTable& structures,
                                             std::vector<std::string>& notes) {
  std::vector<std::optional<Pose>> boxes;
  bool has_any = false;
  std::string wanted, there;
  for (const LabelEntry& structure : structures) {
    const auto found = std::ranges::find(poses, structure.name, &DetectedPose::name);
    const bool is_there = found != poses.end();
    has_any = has_any || is_there;
    boxes.push_back(is_there && found->has_pose ? std::optional(found->pose) : std::nullopt);
    const std::string name = "'" + structure.name + "'";
    wanted += (wanted.empty() ? "" : " or ") + name;
    if (boxes.back()) continue;
    notes.push_back("'" + path + "': " + name + " is " + (is_there ? found->status : "not there"));
  }
  if (has_any) return boxes;
  for (const DetectedPose& one : poses) there += (there.empty() ? "" : ", ") + one.name;
  throw InputError("'" + path + "' has no structure " + wanted + "; it has " + there);
}

}  // namespace

std::vector<std::optional<Pose>> boxes_in_file(const std::string& path,
                                               const LabelTable& structures,
                                               std::vector<std::string>& notes) {
  return boxes_among(read_any_poses(path), path, structures, notes);
}

Pose pose_among(const std::vector<DetectedPose>& poses, const std::string& path,
                const std::string& structure) {
  std::vector<std::string> notes;
  const auto boxes = boxes_among(poses, path, {{0, structure}}, notes);
  if (boxes[0]) return *boxes[0];
  throw InputError(notes[0] + "; there is no pose to start from");
}

}  // namespace larch::pipeline
