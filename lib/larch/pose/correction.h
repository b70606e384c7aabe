// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/data/pose.h"
#include "larch/pose/relative.h"

namespace larch::pose {

/// Detected poses of the structures of one case; null: not found.
using FoundPoses = std::vector<const Pose*>;

/// A rule that corrects the pose of a structure by what was found of all structures together: a
/// linear regression of its true pose, as seen from the detected one, on the size of its box and on
/// the poses of the others as seen from it. The constant part takes away what the detector is off
/// by in the mean; the others tell where it is off in this case, since their errors are their own.
struct PoseCorrection {
  std::vector<double> input_mean{};  ///< of each input: 3 of the box, 9 of each other structure
  std::vector<double> input_sd{};    ///< inputs count up to three times that from the mean
  std::vector<double> weights{};     ///< 9 rows of a constant and one weight per input; empty: none

  friend bool operator==(const PoseCorrection&, const PoseCorrection&) = default;
};

/// Cases in which the structure to be corrected was found and is known; all by case.
struct CorrectionCases {
  std::vector<FoundPoses> found{};
  std::vector<Pose> truth{};
  std::vector<size_t> fold_of{};
};

/// A correction, and the poses of its structure in the cases that it was learned from, each
/// corrected by what is learned from the other folds; by the correction itself if there is one
/// fold.
struct LearnedCorrection {
  PoseCorrection correction;
  std::vector<Pose> held_out{};
};

/// Learns the correction of structure `own`. Ridge regression: each weight is pulled to 0 as if
/// three tenths of the cases said so. A row has weights only if, learned without a fold, they
/// lessen the squared errors of that fold's cases, summed over all folds; with one fold every row
/// has them. Held-out poses are of the same rows. Fewer than kFewestCorrected cases give the
/// constants alone, none gives no correction.
LearnedCorrection learn_correction(const CorrectionCases& cases, size_t own);
constexpr size_t kFewestCorrected = 50;

/// Returns the corrected pose of structure `own`, which was found. A structure that was not found
/// counts as being where it is in the mean.
Pose corrected_pose(const PoseCorrection& correction, const FoundPoses& found, size_t own);

}  // namespace larch::pose
