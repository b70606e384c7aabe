// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/hdn/hdn_config.h"
#include "larch/hdn/model.h"
#include "larch/learning/train_hooks.h"
#include "larch/voxels/train_config.h"

namespace larch::hdn {

/// One image with the poses of its structures.
struct TrainingCase {
  std::string name;                          ///< for messages only
  std::string digest;                        ///< SHA-256 of voxels, grid and truth
  size_t group = 0;                          ///< cases of one group are learned from together
  Grid grid{};                               ///< of the finest level
  image::ImageExtent extent{};               ///< the part of the grid of which there is image
  std::vector<Volume<int16_t>> levels{};     ///< by level, 0 the coarsest
  std::vector<std::optional<Pose>> truth{};  ///< by structure, in mm along the axes of the grid
};

/// Returns the fold of a case, whose detectors do not learn from it.
inline size_t fold_of(const TrainingCase& c, int folds) {
  return c.group % static_cast<size_t>(folds);
}

/// Makes the levels and the digest of a case from its image in model space. `input`: the grid that
/// the image is stored on; `poses`: by structure, in world coordinates.
TrainingCase make_training_case(const std::string& name, Volume<int16_t> voxels, const Grid& input,
                                std::span<const std::optional<Pose>> poses, int halvings,
                                const Context& context);

/// Varies gain and offset of a case, drawn by its digest, so that models do not rely on
/// intensities, by these shares, of 1 and of the steps of the rule.
void vary_intensity(TrainingCase& c, double gain, double offset, const image::IntensityRule& rule,
                    uint64_t seed);

/// Numbers the groups, each case without a name of one being its own, and sorts cases by digests.
void group_and_sort(std::vector<TrainingCase>& cases, std::vector<std::string> group_of);

/// The result of a detector in training cases that it had not learned from.
struct StageReport {
  std::string structure;
  StageKind kind = StageKind::kPosition;
  int level = 0;
  size_t cases = 0, positives = 0, negatives = 0, added_truth = 0;
  std::vector<int> first_positive{};  ///< per case, rank of the first candidate near the truth; -1
  double expected_log_odds = 0;       ///< of the best candidate in cases that it learned from
  double seconds_features = 0, seconds_trees = 0, seconds_detection = 0;
};

/// The cross-validated result of a structure.
struct StructureReport {
  std::string structure;
  size_t cases = 0, failures = 0;
  double centre_mm = 0, rotation_deg = 0;  ///< means of those that are no failures
};

struct TrainReport {
  std::vector<StageReport> stages;
  std::vector<StructureReport> structures;
};

/// The poses that were found so far of a structure in a case.
struct CaseState {
  std::vector<Candidate> candidates{};
  std::vector<Cluster> clusters{};
  double log_odds = 0;  ///< sum of those of the best candidates, less what is expected
};
/// A training that is not finished: detectors and what they found.
struct PartialTraining {
  Model model;
  std::vector<std::vector<CaseState>> found{};      ///< [structure][case]
  std::vector<std::vector<CaseState>> elsewhere{};  ///< the same, if places near it are not tried
  TrainReport report;
};

using TrainHooks = learning::TrainHooks<PartialTraining>;

/// Settings that hdn shares with other models: classifier, space, features, tree, ensemble, mining.
using SharedConfig = voxels::TrainConfig;

/// Throws InputError: a structure occurs in no training case.
[[noreturn]] void throw_missing(const std::string& structure);

/// Trains a network on cases that are sorted by their digests (Zheng et al. 2008; Sofka et al.
/// 2010; US 2012/0069003 A1, paragraphs 95 to 98): level by level and structure by structure, each
/// detector on the candidates that those before it found in cases that they had not learned from.
/// `start`: a model with space, halvings and structures (name, labels, parent, symmetries). The
/// result depends on cases, configuration and context.seed alone. Throws InputError for a structure
/// that occurs in no case, UsageError, MemoryError, and Stopped after a stage.
Model train_network(const std::vector<TrainingCase>& cases, const Model& start,
                    const HdnConfig& config, const SharedConfig& shared, const TrainHooks& hooks,
                    TrainReport& report, const Context& context);

/// Chooses the parents of structures that have none, and the order in which they are found, from
/// detectors of the position at the coarsest level that search everywhere: the next one is
/// whichever has the largest share of its probability at the truth, alone or as a child of one that
/// is found (Sofka et al. 2010). Cases and model get their structures in this order.
void choose_order(std::vector<TrainingCase>& cases, Model& model, const HdnConfig& config,
                  const SharedConfig& shared, const Context& context);

/// Throws UsageError for structures without or with equal names, unknown parents or a cycle among
/// them, stages beyond the levels, and what the tree's configuration refuses. Returns the order in
/// which structures are found: parents before children, otherwise as given.
std::vector<size_t> check_config(const HdnConfig& config);

}  // namespace larch::hdn
