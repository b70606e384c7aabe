// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/paths.h"
#include "larch/cases/case_program.h"
#include "larch/io/markups/markups.h"

// The file of poses of a case: that of the flag --poses for one image; of a list the cell of its
// column, or the file that a run of hdn-detect over the list left for the case in the folder that
// --poses names then.
namespace larch::pipeline {

/// The column of a list with the file of a case's poses (.mrk.json or poses.json).
inline constexpr const char* kPosesColumn = "poses";

/// Throws UsageError for a folder beside one image, and a file beside a list.
void check_poses(const InputList& poses, bool is_list);

/// Puts the file of a case in such a folder into its column; an empty name has no effect. Throws
/// InputError for two files that may be it.
void complete_poses(const InputList& folder, Case& c);
/// Does the same with the label map of a case.
void complete_labels(const InputImage& folder, Case& c);

/// Returns the file of a case, empty if it has none. Throws InputError if the file is missing.
std::string poses_file(const cases::CaseJob& c, const InputList& given);

/// Returns the pose of a structure among `poses`, in LPS mm. `path`: of their file, for messages.
/// Throws InputError if it is not there, or was not found.
Pose pose_among(const std::vector<DetectedPose>& poses, const std::string& path,
                const std::string& structure);

/// Returns the box of each structure by a file of poses; none for what the file does not have, or
/// tells that it was not found: `notes` gets a sentence. Throws InputError if the file has none of
/// the names.
std::vector<std::optional<Pose>> boxes_in_file(const std::string& path,
                                               const LabelTable& structures,
                                               std::vector<std::string>& notes);

}  // namespace larch::pipeline
