// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/train/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/data/volume.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pose/mean_rotation.h"
#include "larch/voxels/pool.h"

namespace larch::hdn {
namespace {

constexpr double kPi = 3.141592653589793, kDegree = kPi / 180;

/// A detector that is trained: of a structure at a level, or the search everywhere for a child.
struct Step {
  size_t structure = 0;
  int level = 0;
  StageKind kind = StageKind::kPosition;
  bool is_fallback = false;
  bool ends_level = false;
};

Vec3d log_ratio(const Vec3d& edges, const Vec3d& of) {
  return {log_of(edges.x / of.x), log_of(edges.y / of.y), log_of(edges.z / of.z)};
}

/// Throws InputError if the cases with structure number `s` are all in one fold, so that the
/// detector which leaves that out would learn from none.
void check_folds(const std::vector<TrainingCase>& cases, size_t s, const std::string& name,
                 int folds) {
  std::set<size_t> found;
  for (size_t c = 0; c < cases.size(); ++c) {
    if (cases[c].truth[s]) found.insert(fold_of(cases[c], folds));
  }
  if (folds == 1 || found.size() != 1) return;
  throw InputError("structure '" + name +
                   "' occurs in too few training cases for hdn/folds: all of them are in one of " +
                   std::to_string(folds) + " folds; give more cases, or 1 fold");
}

/// A training on its way.
class Training {
 public:
  Training(const std::vector<TrainingCase>& cases, const HdnConfig& config,
           const SharedConfig& shared, const TrainHooks& hooks, const Context& context)
      : cases_(cases), config_(config), shared_(shared), hooks_(hooks), context_(context) {}

  PartialTraining run(const Model& start);

 private:
  Model& model() { return all_.model; }
  const std::optional<Pose>& truth(size_t s, size_t c) const { return cases_[c].truth[s]; }
  std::vector<Step> steps() const;
  void begin(const Model& start);
  void learn_relative_pose(size_t s);
  std::vector<CaseSearch> searches(const Step& step,
                                   const std::vector<std::vector<CaseState>>& states) const;
  std::vector<CaseSearch> searches_elsewhere(const Step& step) const;
  Stage stage_of(const Step& step, const std::vector<CaseSearch>& searches, TruthRule& rule);
  void set_rotations(const Step& step, const std::vector<CaseSearch>& searches, Stage& stage);
  void set_scales(const Step& step, const std::vector<CaseSearch>& searches, Stage& stage) const;
  double scale_step(int level) const { return log_of(config_.scale_step) / (1 << level); }
  void detect(const Step& step, const StageTask& task, const TrainedStage& trained,
              StageReport& report);
  void run_step(const Step& step);
  const Pose* found_pose(size_t s, size_t c) const;
  void finish(size_t s);

  const std::vector<TrainingCase>& cases_;
  const HdnConfig& config_;
  const SharedConfig& shared_;
  const TrainHooks& hooks_;
  const Context& context_;
  PartialTraining all_;
};

const StructureConfig& config_of(const HdnConfig& config, const std::string& name) {
  return *std::ranges::find(config.structures, name, &StructureConfig::name);
}

/// Returns the stages of a structure at one of the levels.
std::vector<StageKind> stages_of(const StructureConfig& structure, int level, int levels,
                                 pose::OrientationKind orientation) {
  const bool is_fine = level > 0 && level + 1 == levels;
  const LevelStages stages = !structure.stages.empty() ? image::by_level(structure.stages, level)
                             : is_fine                 ? LevelStages::kPositionOrientation
                                                       : LevelStages::kAll;
  std::vector<StageKind> kinds{StageKind::kPosition};
  if (stages != LevelStages::kPosition && orientation == pose::OrientationKind::kFit) {
    kinds.push_back(StageKind::kOrientation);
  }
  if (stages == LevelStages::kAll) kinds.push_back(StageKind::kScale);
  return kinds;
}

std::vector<Step> Training::steps() const {
  std::vector<Step> steps;
  for (int level = 0; level < all_.model.levels(); ++level) {
    for (size_t s = 0; s < all_.model.structures.size(); ++s) {
      const Structure& structure = all_.model.structures[s];
      for (const StageKind kind : stages_of(config_of(config_, structure.name), level,
                                            all_.model.levels(), config_.orientation)) {
        steps.push_back({s, level, kind, false, false});
      }
      steps.back().ends_level = true;
    }
  }
  for (size_t s = 0; config_.fallback && s < all_.model.structures.size(); ++s) {
    if (all_.model.structures[s].parent >= 0) steps.push_back({s, 0, StageKind::kPosition, true});
  }
  return steps;
}

/// The pose of a child as seen from its parent where the coarsest level finds that, errors
/// included.
void Training::learn_relative_pose(size_t s) {
  Structure& structure = model().structures[s];
  const auto parent = static_cast<size_t>(structure.parent);
  const double near_mm = 3 * model().spacing_mm(0);
  std::vector<pose::RelativePose> relative, true_relative;
  for (size_t c = 0; c < cases_.size(); ++c) {
    if (!truth(s, c) || !truth(parent, c)) continue;
    true_relative.push_back(pose::relative_pose(*truth(parent, c), *truth(s, c)));
    const std::vector<Cluster>& clusters = all_.found[parent][c].clusters;
    if (clusters.empty()) continue;
    const Pose& found = clusters[0].pose;
    if (norm(found.centre_mm - truth(parent, c)->centre_mm) > near_mm) continue;
    relative.push_back(pose::relative_pose(found, *truth(s, c)));
  }
  if (true_relative.empty()) {
    throw InputError("structure '" + structure.name + "' and its parent '" +
                     model().structures[parent].name +
                     "' occur together in no training case; leave the parent out");
  }
  // In a very small training the parent may be found nowhere.
  if (relative.empty()) relative = true_relative;
  structure.to_parent = pose::fit_gaussian(
      relative, {model().spacing_mm(0) / 2,
                 image::by_level(config_.rotation_step_deg, 0) * kDegree / 3, scale_step(0) / 2});
}

std::vector<CaseSearch> Training::searches(
    const Step& step, const std::vector<std::vector<CaseState>>& states) const {
  const Structure& structure = all_.model.structures[step.structure];
  std::vector<CaseSearch> searches(cases_.size());
  for (size_t c = 0; c < cases_.size(); ++c) {
    CaseSearch& search = searches[c];
    const CaseState& own = states[step.structure][c];
    if (step.kind != StageKind::kPosition) {
      search.candidates = own.candidates;
    } else if (step.level > 0) {
      search.search = SearchKind::kAround;
      for (const Cluster& k : own.clusters) search.seeds.push_back(own_seed(k));
    } else if (structure.parent >= 0 && !step.is_fallback) {
      search.search = SearchKind::kPrior;
      search.to_parent = structure.to_parent;
      search.prior_weight = all_.model.prior_weight;
      for (const Cluster& k : states[static_cast<size_t>(structure.parent)][c].clusters) {
        search.seeds.push_back(child_seed(k, structure.to_parent.mean));
      }
    } else {
      search = root_search(cases_[c], structure);
    }
  }
  return searches;
}

/// The searches for what looks most like the structure without being it: all that is as near to it
/// as detectors do not take for something else, or as a pose that counts as found, is avoided.
std::vector<CaseSearch> Training::searches_elsewhere(const Step& step) const {
  std::vector<CaseSearch> all = searches(step, all_.elsewhere);
  for (size_t c = 0; c < cases_.size(); ++c) {
    const std::optional<Pose>& own = truth(step.structure, c);
    if (!own) {  // the search is the same as the other
      all[c] = {};
      all[c].search = SearchKind::kAround;
      continue;
    }
    const double mm = std::max(failure_distance_mm(own->edges_mm), 2 * all_.model.spacing_mm(0));
    all[c].avoided_mm = own->centre_mm;
    all[c].avoided_square = mm * mm;
  }
  return all;
}

void Training::set_rotations(const Step& step, const std::vector<CaseSearch>& searches,
                             Stage& stage) {
  const double wanted = image::by_level(config_.rotation_step_deg, step.level) * kDegree;
  double radius = image::by_level(config_.rotation_radius_deg, step.level) * kDegree;
  std::vector<Quaternion> turns;
  std::vector<double> angles;
  for (size_t c = 0; c < cases_.size(); ++c) {
    if (!truth(step.structure, c) || searches[c].candidates.empty()) continue;
    const Quaternion& expected = searches[c].candidates[0].pose.rotation;
    turns.push_back(canonical(conjugate(expected) * truth(step.structure, c)->rotation));
    angles.push_back(angle_between(turns.back(), {}));
  }
  if (turns.empty()) return;
  if (radius == 0) {
    std::ranges::sort(angles);
    radius = 1.1 * angles[(angles.size() - 1) * 95 / 100] + 5 * kDegree;
  }
  double covered = 0.75 * wanted;
  switch (config_.rotations) {
    case pose::RotationSet::kBall:
      radius = std::min(radius, kPi);
      stage.rotations = pose::ball_of_rotations(radius, wanted);
      covered = pose::measure_covering(stage.rotations, radius).most;
      break;
    case pose::RotationSet::kUniform:
      stage.rotations = pose::uniform_rotations(static_cast<size_t>(config_.rotation_count));
      covered = pose::measure_covering(stage.rotations, kPi).most;
      break;
    case pose::RotationSet::kExamples:
      stage.rotations = pose::cover_rotations(turns, covered);
      break;
  }
  model().structures[step.structure].agreement_rad[static_cast<size_t>(step.level)] = 2 * covered;
}

void Training::set_scales(const Step& step, const std::vector<CaseSearch>& searches,
                          Stage& stage) const {
  const double width = scale_step(step.level);
  std::vector<Vec3d> factors;
  for (size_t c = 0; c < cases_.size(); ++c) {
    if (!truth(step.structure, c) || searches[c].candidates.empty()) continue;
    factors.push_back(
        log_ratio(truth(step.structure, c)->edges_mm, searches[c].candidates[0].pose.edges_mm));
  }
  if (factors.empty()) return;
  Vec3d low = factors[0], high = factors[0];
  for (const Vec3d& f : factors) widen(low, high, f);
  if (step.level > 0) {
    low = Vec3d{1, 1, 1} * (-2 * width);
    high = Vec3d{1, 1, 1} * (2 * width);
  }
  if (config_.scales == ScaleSet::kGrid) {
    const Vec3d margin = Vec3d{1, 1, 1} * (step.level > 0 ? 0 : width / 2);
    stage.log_scales = pose::scale_grid(low - margin, high + margin, width);
  }
  for (double apart = width / 2;
       stage.log_scales.empty() || stage.log_scales.size() > pose::kMaximumScales; apart *= 1.1) {
    stage.log_scales = pose::cover_scales(factors, apart);
  }
}

Stage Training::stage_of(const Step& step, const std::vector<CaseSearch>& searches,
                         TruthRule& rule) {
  Stage stage;
  stage.kind = step.kind;
  stage.level = step.level;
  const auto kind = static_cast<size_t>(step.kind);
  stage.keep = step.level == 0 ? config_.keep_first[kind] : config_.keep[kind];
  if (step.kind == StageKind::kOrientation) set_rotations(step, searches, stage);
  if (step.kind == StageKind::kScale) set_scales(step, searches, stage);
  const double agreement =
      all_.model.structures[step.structure].agreement_rad[static_cast<size_t>(step.level)];
  rule.angle_rad = agreement / 2;
  // A face that is half a voxel off is right.
  const Vec3d& edges = all_.model.structures[step.structure].mean.edges_mm;
  for (int axis = 0; axis < 3; ++axis) {
    rule.log_scale[axis] =
        std::max(scale_step(step.level), all_.model.spacing_mm(step.level) / edges[axis]);
  }
  return stage;
}

/// Each case with the detector that has not learned from it.
void Training::detect(const Step& step, const StageTask& task, const TrainedStage& trained,
                      StageReport& report) {
  CrossPrediction predicted = cross_predict(task, trained, searches_elsewhere(step), context_);
  report.expected_log_odds = predicted.expected_log_odds;
  for (size_t c = 0; c < cases_.size(); ++c) {
    CaseState& elsewhere = all_.elsewhere[task.structure][c];
    elsewhere.candidates = std::move(predicted.elsewhere[c]);
    elsewhere.log_odds += predicted.log_odds_elsewhere[c];
    CaseState& state = all_.found[task.structure][c];
    state.candidates = std::move(predicted.kept[c]);
    state.log_odds += predicted.log_odds[c];
    if (!task.truth(c)) continue;
    const auto near = std::ranges::find_if(state.candidates, [&](const Candidate& candidate) {
      return truth_of(task.stage.kind, candidate.pose, *task.truth(c), task.spacing_mm(),
                      task.rule) > 0;
    });
    report.first_positive.push_back(
        near == state.candidates.end() ? -1 : static_cast<int>(near - state.candidates.begin()));
  }
}

void Training::run_step(const Step& step) {
  const Structure& structure = model().structures[step.structure];
  if (step.level == 0 && step.kind == StageKind::kPosition && structure.parent >= 0 &&
      !step.is_fallback) {
    learn_relative_pose(step.structure);
  }
  StageReport report;
  report.structure = structure.name;
  report.kind = step.kind;
  report.level = step.level;
  std::vector<CaseSearch> where = searches(step, all_.found);
  TruthRule rule;
  Stage stage = stage_of(step, where, rule);
  StageTask task{cases_, model(),          step.structure, std::move(stage),
                 rule,   std::move(where), config_,        shared_};
  const auto start = std::chrono::steady_clock::now();
  TrainedStage trained = task.is_of_boxes() ? train_boxes(task, report, context_)
                                            : train_position(task, report, context_);
  const double trained_at = seconds_since(start);
  if (!task.is_of_boxes()) report.seconds_trees = trained_at;
  if (!step.is_fallback) {
    detect(step, task, trained, report);
    if (step.ends_level) {
      const pose::ClusterRule rule_of_clusters = cluster_rule(
          model(), step.level,
          model().structures[step.structure].agreement_rad[static_cast<size_t>(step.level)]);
      for (size_t c = 0; c < cases_.size(); ++c) {
        for (auto* states : {&all_.found, &all_.elsewhere}) {
          CaseState& state = (*states)[step.structure][c];
          state.clusters = cluster_candidates(state.candidates, rule_of_clusters);
        }
      }
    }
  }
  report.seconds_detection = seconds_since(start) - trained_at;
  Structure& grown = model().structures[step.structure];
  (step.is_fallback ? grown.root_position : grown.detectors).push_back(std::move(trained.full));
  all_.report.stages.push_back(std::move(report));
}

/// The detected pose of a structure in a case; null if there is none within the distance from the
/// truth that a failure has.
const Pose* Training::found_pose(size_t s, size_t c) const {
  const std::vector<Cluster>& clusters = all_.found[s][c].clusters;
  if (!truth(s, c) || clusters.empty()) return nullptr;
  const Pose& pose = clusters[0].pose;
  const double error_mm = norm(pose.centre_mm - truth(s, c)->centre_mm);
  return error_mm > failure_distance_mm(truth(s, c)->edges_mm) ? nullptr : &pose;
}

/// Finishes a structure by its cross-validated poses when all detectors are there.
void Training::finish(size_t s) {
  Structure& structure = model().structures[s];
  StructureReport report{structure.name};
  pose::CorrectionCases known;
  std::vector<FinestImage> images;
  std::vector<double> right, wrong;
  for (size_t c = 0; c < cases_.size(); ++c) {
    const double log_odds_of_case = all_.found[s][c].log_odds;
    wrong.push_back(truth(s, c) ? all_.elsewhere[s][c].log_odds : log_odds_of_case);
    if (!truth(s, c)) continue;
    ++report.cases;
    if (found_pose(s, c) == nullptr) {
      ++report.failures;
      wrong.push_back(log_odds_of_case);
      continue;
    }
    pose::FoundPoses& all = known.found.emplace_back();
    for (size_t t = 0; t < model().structures.size(); ++t) all.push_back(found_pose(t, c));
    known.truth.push_back(*truth(s, c));
    known.fold_of.push_back(fold_of(cases_[c], config_.folds));
    images.push_back({&cases_[c].levels.back(), cases_[c].extent});
    right.push_back(log_odds_of_case);
  }
  pose::LearnedCorrection learned = pose::learn_correction(known, s);
  structure.correction = std::move(learned.correction);
  std::vector<Pose>& poses = learned.held_out;
  structure.appearance =
      learn_appearance(images, known, structure.mean_distance_mm, poses, context_);
  std::vector<pose::RelativePose> errors;
  const auto count = static_cast<double>(std::max<size_t>(poses.size(), 1));
  for (size_t k = 0; k < poses.size(); ++k) {
    const Pose& right = known.truth[k];
    errors.push_back(pose::relative_pose(right, poses[k]));
    report.centre_mm += norm(poses[k].centre_mm - right.centre_mm) / count;
    report.rotation_deg += angle_between(poses[k].rotation, right.rotation) / kDegree / count;
  }
  // No error is known better than a fraction of the finest steps.
  const int finest = model().levels() - 1;
  structure.errors = pose::fit_gaussian(
      errors, {model().spacing_mm(finest) / 10, kDegree / 10, scale_step(finest) / 10});
  structure.calibration = learning::calibrate(right, wrong, /*most_slope=*/1);
  learning::Logistic& probability = structure.calibration.probability;
  for (const StageReport& stage : all_.report.stages) {
    if (stage.structure != structure.name) continue;
    probability.offset -= probability.slope * stage.expected_log_odds;
  }
  for (const auto& [name, value] : {std::pair{" centre_error_mm", report.centre_mm},
                                    {" rotation_error_deg", report.rotation_deg},
                                    {" failures", static_cast<double>(report.failures)}}) {
    model().info.validation.emplace_back(structure.name + name, value);
  }
  all_.report.structures.push_back(report);
}

void Training::begin(const Model& start) {
  if (hooks_.resume != nullptr) {
    all_ = *hooks_.resume;
    return;
  }
  all_.model = start;
  all_.found.assign(start.structures.size(), std::vector<CaseState>(cases_.size()));
  all_.elsewhere = all_.found;
  for (size_t s = 0; s < start.structures.size(); ++s) {
    const std::string& name = model().structures[s].name;
    model().structures[s].mean = mean_pose(cases_, s, name);
    check_folds(cases_, s, name, config_.folds);
    model().structures[s].agreement_rad.assign(static_cast<size_t>(model().levels()), 2 * kPi);
  }
}

PartialTraining Training::run(const Model& start) {
  begin(start);
  const std::vector<Step> all = steps();
  for (size_t k = all_.report.stages.size(); k < all.size(); ++k) {
    const Structure& structure = model().structures[all[k].structure];
    context_.progress(static_cast<double>(k) / static_cast<double>(all.size()),
                      "detector " + std::to_string(k + 1) + " of " + std::to_string(all.size()) +
                          ": " + structure.name);
    run_step(all[k]);
    if (hooks_.after_step) hooks_.after_step(all_);
    context_.throw_if_stopped("stopped after detector " + std::to_string(k + 1) +
                              "; continue with --resume");
  }
  for (size_t s = 0; s < model().structures.size(); ++s) finish(s);
  return std::move(all_);
}

}  // namespace

TrainingCase make_training_case(const std::string& name, Volume<int16_t> voxels, const Grid& input,
                                std::span<const std::optional<Pose>> poses, int halvings,
                                const Context& context) {
  TrainingCase c;
  c.name = name;
  c.grid = voxels.grid();
  c.extent = image::extent_of(input, c.grid);
  Sha256 sha;
  add_to_digest(voxels, sha);
  for (const std::optional<Pose>& pose : poses) {
    c.truth.emplace_back();
    if (!pose) continue;
    c.truth.back() = grid_from_world(c.grid, *pose);
    sha.update(&*pose, sizeof(Pose));
  }
  c.digest = hex(sha.digest());
  Context host = context;
  host.device = Device::cpu();
  const auto levels = image::make_levels(voxels.view(), halvings, halvings + 1, host);
  for (size_t l = levels.size(); l-- > 0;) {
    Grid grid = c.grid;
    grid.size = levels[l].size;
    Volume<int16_t>& level = c.levels.emplace_back(grid);
    std::copy_n(levels[l].voxels.data(), level.voxels(), level.data());
  }
  return c;
}

void vary_intensity(TrainingCase& c, double gain, double offset, const image::IntensityRule& rule,
                    uint64_t seed) {
  const uint64_t stream = std::stoull(c.digest.substr(0, 15), nullptr, 16);
  const auto draw = [&](uint64_t k) { return 2 * hash_unit(seed, stream, k) - 1; };
  const double factor = 1 + gain * draw(0);
  const double shift = offset * draw(1) * rule.steps;
  const auto [low, high] = image::value_range(rule);
  for (Volume<int16_t>& level : c.levels) {
    for (int64_t i = 0; i < level.voxels(); ++i) {
      const double value = std::nearbyint(factor * level[i] + shift);
      level[i] = static_cast<int16_t>(
          std::clamp(value, static_cast<double>(low), static_cast<double>(high)));
    }
  }
}

void group_and_sort(std::vector<TrainingCase>& cases, std::vector<std::string> group_of) {
  for (size_t c = 0; c < cases.size(); ++c) {
    if (group_of[c].empty()) group_of[c] = cases[c].digest;
  }
  const std::set<std::string> groups(group_of.begin(), group_of.end());
  for (size_t c = 0; c < cases.size(); ++c) {
    cases[c].group = static_cast<size_t>(std::distance(groups.begin(), groups.find(group_of[c])));
  }
  std::ranges::stable_sort(cases, [](const auto& a, const auto& b) {
    return std::tie(a.digest, a.group) < std::tie(b.digest, b.group);
  });
}

std::vector<size_t> check_config(const HdnConfig& config) {
  const bool has_parents =
      std::ranges::any_of(config.structures, [](const auto& s) { return !s.parent.empty(); });
  if (config.order == Order::kAuto && has_parents) {
    throw UsageError(
        "hdn/structures: with order auto the training chooses the parents; leave "
        "them out");
  }
  if (config.structures.empty()) throw UsageError("hdn/structures: names no structure");
  if (config.structures.size() > kMaximumStructures) {
    throw UsageError("hdn/structures: more than " + std::to_string(kMaximumStructures));
  }
  std::set<std::string> names;
  for (const StructureConfig& s : config.structures) {
    if (s.name.empty()) throw UsageError("hdn/structures: a structure needs a name");
    if (!names.insert(s.name).second) {
      throw UsageError("hdn/structures: '" + s.name + "' stands twice");
    }
    if (s.stages.size() > static_cast<size_t>(config.halvings) + 1) {
      throw UsageError("hdn/structures/" + s.name + "/stages: there are only " +
                       std::to_string(config.halvings + 1) + " levels");
    }
  }
  std::vector<size_t> order;
  std::set<std::string> placed;
  while (order.size() < config.structures.size()) {
    const size_t before = order.size();
    for (size_t i = 0; i < config.structures.size(); ++i) {
      const StructureConfig& s = config.structures[i];
      if (!s.parent.empty() && names.count(s.parent) == 0) {
        throw UsageError("hdn/structures/" + s.name + "/parent: there is no structure '" +
                         s.parent + "'");
      }
      if (placed.count(s.name) > 0 || (!s.parent.empty() && placed.count(s.parent) == 0)) continue;
      placed.insert(s.name);
      order.push_back(i);
    }
    if (order.size() == before) {
      throw UsageError(
          "hdn/structures: the parents make a cycle; every structure needs one that "
          "is found without it");
    }
  }
  return order;
}

Model train_network(const std::vector<TrainingCase>& cases, const Model& start,
                    const HdnConfig& config, const SharedConfig& shared, const TrainHooks& hooks,
                    TrainReport& report, const Context& context) {
  if (cases.size() < 2) throw InputError("a network is trained on at least two cases");
  Training training(cases, config, shared, hooks, context);
  PartialTraining all = training.run(start);
  report = std::move(all.report);
  all.model.info.seed = context.seed;
  for (const TrainingCase& c : cases) all.model.info.case_digests.push_back(c.digest);
  check_model(all.model);
  return std::move(all.model);
}

}  // namespace larch::hdn
