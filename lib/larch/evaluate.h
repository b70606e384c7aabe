// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"

/// Scores of results against the truth: labels against labels, meshes against meshes or labels,
/// poses against poses; and summaries over cases. lib/larch/metrics/README.md defines them.
namespace larch {

/// A figure of merit. NaN where it does not exist.
struct Score {
  const char* name;  ///< "dice", "surface_mean_mm", ...
  double value;
};

/// The scores of one structure: a label, "union", "surface", or what has a pose.
struct StructureScores {
  std::string structure;
  std::vector<Score> scores;
};

struct LabelScoreConfig {
  std::vector<int> labels{};
  std::vector<int> prediction_labels{};
  std::vector<int> ignore{};
  bool merge = false;
  bool surfaces = true;
  double tolerance_mm = 1;
  template <class F>
  void fields(F&& f) {
    f(Field{"labels", labels, "labels to score; empty = all that occur, except 0"},
      Field{"prediction_labels", prediction_labels,
            "with merge: the labels of the prediction, if they are not those of the reference"},
      Field{"ignore", ignore,
            "voxels in which the reference has one of these labels are left out of every figure, "
            "as those of the label 'ignore' of nnU-Net"},
      Field{"merge", merge, "score only the union of the labels, as one structure"},
      Field{"surfaces", surfaces, "measure surface distances too"},
      Field{"tolerance_mm", tolerance_mm, "surfaces so near agree, for surface_dice", 0, 1000});
  }
};

/// Scores each label (unless config.merge) and then the union of the labels, "union": dice,
/// jaccard, prediction_mm3, reference_mm3, volume_difference_mm3, relative_volume_difference; with
/// config.surfaces assd_mm, surface_median_mm, surface_p95_mm and surface_max_mm of both directions
/// pooled, hd95_mm, the greater one of both, and surface_dice, the share of the area within
/// config.tolerance_mm; and sensitivity, precision and total_correct_fraction. Voxels that are
/// ignored belong to no structure: surfaces end there. Takes the turn of its job. Throws InputError
/// if the grids differ, UsageError for prediction_labels without merge, and MemoryError, before
/// they are made, if the surfaces of a structure take more than `surface_bytes`.
std::vector<StructureScores> score_labels(const LabelVolume& prediction,
                                          const LabelVolume& reference,
                                          const LabelScoreConfig& config, const Context& context,
                                          int64_t surface_bytes = INT64_MAX);

/// Returns the labels other than 0 that occur in the prediction and in the reference, ascending,
/// without the voxels in which the reference has one of `ignore`. Throws InputError if the grids
/// differ.
std::pair<std::vector<int32_t>, std::vector<int32_t>> labels_in(const LabelVolume& prediction,
                                                                const LabelVolume& reference,
                                                                std::span<const int> ignore = {});

/// Scores a mesh, as the structure "surface": mssd_mm, rms_mm, hd95_mm and hd_mm of the two
/// directions, assd_mm, surface_median_mm, surface_p95_mm and surface_max_mm of both
/// pooled, missed and false_positive, by which a mesh without triangles is nothing, and dice, which
/// is NaN since there is no grid. Meshes are in mm of one world space. Takes the turn of its job.
/// Throws MemoryError if the pieces that large triangles are cut into do not fit.
StructureScores score_mesh(const Mesh& prediction, const Mesh& reference, const Context& context);

/// Scores a mesh against the surface of the union of `labels`, or of all but 0 if there are none;
/// dice is that of the voxels whose centres the mesh encloses.
StructureScores score_mesh(const Mesh& prediction, const LabelVolume& reference,
                           std::span<const int> labels, const Context& context);

/// Compares a detected pose (null: nothing was detected) with the true one (null: it is not there),
/// both in mm of one world space. Without one of them a score is NaN, but for what is said here:
///
///     centre_error_mm
///     line_error_mm       greater distance of the ends of the axial lines, which lead from face to
///                         face through the centre, along the longest edge of the true box
///     rotation_error_deg  angle of the rotation between both, 0 to 180
///     scale_error         mean over the axes of |edge / true edge - 1|
///     box_iou             intersection over union of the boxes; 0 if nothing was detected
///     failure             1 if the centre error is above 10 mm or half of the smallest true edge,
///                         or if nothing was detected; else 0
///     missed              1 for what is there and not found, else 0; NaN if it is not there
///     false_positive      1 for what is found and not there, else 0; NaN if it is there
///
/// The structure looks the same after each rotation of `symmetries` in its box frame, the identity
/// aside, whose axes lie along those of the box: truth * S with its edges along their new axes is
/// as true. The rotation and the scale are compared with the one of these poses that is turned the
/// least against the detected one, the line with the one whose line is nearest.
StructureScores score_pose(const std::string& structure, const Pose* detected, const Pose* truth,
                           std::span<const Quaternion> symmetries = {});

/// Returns the share of pairs of one that is there and one that is not in which the former has the
/// higher confidence, equal ones counting half: the area under the curve of the receiver operating
/// characteristic. NaN where either has none.
double area_under_curve(std::span<const double> there, std::span<const double> absent);

/// Figures of the values that are not NaN; NaN where there are too few, which for the interval and
/// the deviation (n - 1) are fewer than two.
struct Summary {
  int64_t count = 0;
  double mean, sd, median, p95;
  double ci_low, ci_high;  ///< 95 % interval of the mean by the bootstrap
};

/// Quantiles lie between the values next to them, in proportion. The interval is that of the
/// percentiles 2.5 and 97.5 of the means of 2000 resamples (Efron, Tibshirani, An Introduction to
/// the Bootstrap, 1993, section 13.3), which are drawn by a fixed seed: the same values in any
/// order give the same bytes.
Summary summarise(std::span<const double> values);

/// The scores of one case of a list.
struct CaseScores {
  std::string id;
  std::vector<StructureScores> structures;
};

/// Tells whether a score is the better the greater it is, as dice; others are best at 0.
bool is_best_when_great(std::string_view score);

/// A score of a structure over all cases that have it.
struct SummaryRow {
  std::string structure;
  const char* score;
  Summary summary;
  double worst;  ///< the smallest (is_best_when_great), of differences the farthest from 0, or
                 ///< else the greatest
  std::string worst_case;  ///< the id of the first case with it; empty if no case has the score
};
/// In the order in which structures and scores first occur.
std::vector<SummaryRow> summarise(std::span<const CaseScores> cases);

/// Scores by the id of the case, the structure and the name of the score.
using ScoreTable = std::map<std::string, std::map<std::string, std::map<std::string, double>>>;

/// Returns the scores less those of the same case and structure in `baseline`, NaN where it has no
/// such score; cases and structures that it lacks are left out. summarise() gives the mean of the
/// paired differences with its interval.
std::vector<CaseScores> paired_differences(std::span<const CaseScores> cases,
                                           const ScoreTable& baseline);

/// Returns a TSV with the columns id, structure and one per score; "n/a" for NaN. Numbers are the
/// shortest that read back the same.
std::string to_tsv(std::span<const CaseScores> cases);

}  // namespace larch
