// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/case_poses.h"

#include <algorithm>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/evaluation/pairs.h"

namespace larch::pipeline {
namespace {

/// Returns what a file of poses says of a structure; nullptr: nothing.
const DetectedPose* pose_named(const std::vector<DetectedPose>& poses, const std::string& name) {
  const auto found = std::ranges::find(poses, name, &DetectedPose::name);
  return found == poses.end() ? nullptr : &*found;
}

template <class Named>
std::string names_of(const std::vector<Named>& all) {
  std::string names;
  for (const Named& one : all) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

}  // namespace

void check_poses(const InputList& poses, bool is_list) {
  if (!poses || is_folder(poses) == is_list) return;
  throw UsageError(is_list ? "--poses: with --list give the folder of a run of hdn-detect, or the "
                             "list a column 'poses' with the files"
                           : "--poses: '" + poses.path + "' is a folder, which goes with --list");
}

void complete_poses(const InputList& folder, Case& c) {
  if (folder) c.further[kPosesColumn] = prediction_in(folder, c.id, PredictionKind::kPoses);
}

std::string poses_file(const cases::CaseJob& c, const InputList& given) {
  const std::string path = c.is_of_list ? c.row.cell(kPosesColumn) : given.path;
  const std::string why = path.empty() || path == "n/a" ? "" : why_missing(path);
  if (!why.empty()) throw InputError("the poses of the case: '" + path + "' " + why);
  return path == "n/a" ? "" : path;
}

Pose pose_in_file(const std::string& path, const std::string& structure) {
  const std::vector<DetectedPose> poses = read_any_poses(path);
  const DetectedPose* found = pose_named(poses, structure);
  if (found == nullptr) {
    throw InputError("'" + path + "' has no structure '" + structure + "'; it has " +
                     names_of(poses));
  }
  if (found->has_pose) return found->pose;
  throw InputError("'" + path + "': '" + structure + "' is " + found->status +
                   "; there is no pose to start from");
}

std::vector<std::optional<Pose>> boxes_in_file(const std::string& path,
                                               const LabelTable& structures,
                                               std::vector<std::string>& notes) {
  const std::vector<DetectedPose> poses = read_any_poses(path);
  std::vector<std::optional<Pose>> boxes;
  bool is_named = false;
  for (const LabelEntry& structure : structures) {
    const DetectedPose* found = pose_named(poses, structure.name);
    is_named = is_named || found != nullptr;
    std::string why;
    if (found == nullptr) {
      why = "has no pose in '" + path + "'";
    } else if (!found->has_pose) {
      why = "is " + found->status + " in '" + path + "'";
    }
    boxes.push_back(why.empty() ? std::optional(found->pose) : std::nullopt);
    if (!why.empty()) notes.push_back("'" + structure.name + "' " + why + "; it is not looked for");
  }
  if (is_named) return boxes;
  throw InputError("'" + path + "' has none of the structures of the model, which are " +
                   names_of(structures) + "; it has " + names_of(poses));
}

}  // namespace larch::pipeline
