// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/hdn/stages.h"
#include "larch/hdn/train/train.h"
#include "larch/learning/feature_source.h"
#include "larch/tree/train/samples.h"

namespace larch::hdn {

/// The images of a training case at a level, on context.device. Without channels no box sums.
struct CaseImages {
  std::vector<image::LevelImage> pyramid;
  LevelImages level;
};
CaseImages make_case_images(const TrainingCase& c, const Model& model, int level,
                            std::span<const image::ChannelSpec> channels, const Vec3i& reach,
                            const Context& context);

/// The places where a detector of a structure looks in a case, on the host.
struct CaseSearch {
  SearchKind search = SearchKind::kRoot;
  Pose base{};         ///< kRoot
  Vec3d avoided_mm{};  ///< as in Segment
  double avoided_square = 0;
  std::vector<Seed> seeds{};           ///< the others; none: nothing is tried
  pose::RelativeGaussian to_parent{};  ///< kPrior
  double prior_weight = 1;
  std::vector<Candidate> candidates{};  ///< orientation and scale

  bool is_empty(StageKind kind) const {
    return kind == StageKind::kPosition ? search != SearchKind::kRoot && seeds.empty()
                                        : candidates.empty();
  }
};

/// The segment of a search whose seeds and candidates are on the host too: for the CPU, and for
/// going over its hypotheses.
struct HostSegment {
  Segment segment;
  int32_t seed_count = 0, candidate_count = 0;  ///< that the segment points to
};
void make_segment(const CaseSearch& search, const ResidentDetector& detector,
                  const LevelViews& level, HostSegment& out);

/// Returns the candidates that a detector keeps in one case.
std::vector<Candidate> search_case(const CaseSearch& search, const ResidentDetector& detector,
                                   const CaseImages& images, const Context& context);

/// Returns the clusters of candidates, on the host.
std::vector<Cluster> cluster_candidates(const std::vector<Candidate>& candidates,
                                        const pose::ClusterRule& rule);

/// A hypothesis counts as the structure within these of the truth; beyond twice as much it counts
/// as something else, and in between it is not learned from.
struct TruthRule {
  double centre_voxels = 1.5;
  double angle_rad = 0;  ///< of the rotations that are tried: no pose is farther from all of them
  Vec3d log_scale{};     ///< half a step of the scales
};

/// +1, -1 or 0 (not learned from): a hypothesis of a stage by the distance from the truth. Zheng et
/// al. 2008, section IV: within one step, beyond two.
int truth_of(StageKind kind, const Pose& pose, const Pose& truth, double spacing_mm,
             const TruthRule& rule);

/// The training of one detector.
struct StageTask {
  const std::vector<TrainingCase>& cases;
  const Model& model;
  size_t structure = 0;
  Stage stage;
  TruthRule rule;
  std::vector<CaseSearch> searches{};  ///< by case
  const HdnConfig& config;
  const SharedConfig& shared;

  const std::optional<Pose>& truth(size_t c) const { return cases[c].truth[structure]; }
  /// Tells whether the detector sees steerable features: all but those of positions that are
  /// searched everywhere or where a parent suggests, whose nodes have no rotation and scale of
  /// their own yet.
  bool is_of_boxes() const { return stage.kind != StageKind::kPosition || stage.level > 0; }
  double spacing_mm() const { return model.spacing_mm(stage.level); }
  size_t fold_of(size_t c) const { return hdn::fold_of(cases[c], config.folds); }
  bool is_learned(size_t c, size_t fold) const {
    return fold == static_cast<size_t>(config.folds) || config.folds == 1 || fold_of(c) != fold;
  }
};

/// A detector of all cases, and those that did not learn from the cases of a fold; none of these
/// where there is one fold.
struct TrainedStage {
  Detector full;
  std::vector<Detector> folds;
};

/// Trains a detector for each fold without its cases, by `grow(fold)`, and the one of all cases by
/// `grow(folds)`.
template <class Grow>
TrainedStage train_folds(const StageTask& task, const Grow& grow) {
  const auto folds = static_cast<size_t>(task.config.folds);
  TrainedStage trained{grow(folds), {}};
  for (size_t fold = 0; folds > 1 && fold < folds; ++fold) trained.folds.push_back(grow(fold));
  return trained;
}

/// Holds what a forest grows from. The bits of a sample's id from 2^40 on are its case; samples are
/// in the order of these.
struct StageColumns {
  const learning::FeatureSource& source;
  const tree::Samples& samples;
  std::span<const learning::CodeMap> maps;        ///< of the columns
  std::span<const learning::CodeMap> codes_of{};  ///< where columns are codes: of these values
};
/// A forest, whose features are places in `columns`, which are columns of the source.
struct StageForest {
  tree::Forest forest;
  std::vector<uint32_t> columns;
};
/// Grows a forest on the cases of a fold. Throws InputError where they give no sample.
StageForest grow_forest(const StageTask& task, const StageColumns& from, size_t fold,
                        const Context& context);

/// Position: nodes are voxels of the level, and detectors have Haar features. Boosting trees are
/// what pbt::train makes.
TrainedStage train_position(const StageTask& task, StageReport& report, const Context& context);

/// Orientation, scale, and position around clusters: boxes with steerable features, whose codes are
/// computed once for the trees of all folds.
TrainedStage train_boxes(const StageTask& task, StageReport& report, const Context& context);

/// The candidates of each case.
using CaseCandidates = std::vector<std::vector<Candidate>>;
struct CrossPrediction {
  CaseCandidates kept, elsewhere;
  /// Of the best candidates by case, less what is expected of the detector.
  std::vector<double> log_odds, log_odds_elsewhere;
  double expected_log_odds = 0;  ///< of the detector of all cases
};
/// Returns the candidates that each case keeps with the detector that has not learned from it, and
/// those of the searches elsewhere, if there are any. Detectors of fewer cases are surer or less
/// sure than those of more: what is expected of one is its mean in some cases that it learned from.
CrossPrediction cross_predict(const StageTask& task, const TrainedStage& trained,
                              const std::vector<CaseSearch>& elsewhere, const Context& context);

/// Returns the search everywhere in a case.
CaseSearch root_search(const TrainingCase& c, const Structure& structure);

/// The mean rotation and the mean edges of structure number `s` in its cases, in mm along the axes
/// of the grids, which are those of the patient. Throws InputError if there is none.
Pose mean_pose(const std::vector<TrainingCase>& cases, size_t s, const std::string& name);

}  // namespace larch::hdn
