// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/hdn_training.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/cases/images.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/hdn/train/train.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/markups/markups.h"
#include "larch/models/layout.h"
#include "larch/models/model_file.h"
#include "larch/picture/plot.h"
#include "larch/pipeline/case_labels.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Returns what a list says of an image on a grid.
TrainingCase read_case(const Case& c, const TrainingFiles& files, const Grid& grid) {
  TrainingCase out{image_and_label(c), {}};
  const std::string poses = c.cell(kPosesColumn);
  if (poses.empty() && c.label.empty()) {
    throw InputError("it has neither a label map nor poses; add a column label or poses");
  }
  if (poses.empty()) {
    out.labels = read_case_labels(c, grid, files.labels, files.read);
    return out;
  }
  for (const DetectedPose& pose : read_poses_or_points(poses).poses) {
    if (pose.has_pose) out.poses[pose.name] = pose.pose;
  }
  return out;
}

/// Structures that files give as points have a position alone, unless the configuration says
/// otherwise. Where it names none, each point is one.
hdn::HdnConfig with_points(const TrainingFiles& files, hdn::HdnConfig config) {
  const bool has_names = !config.structures.empty();
  for (const Case& c : files.cases) {
    const std::string poses = c.cell(kPosesColumn);
    if (poses.empty()) continue;
    const PosesOfFile found = naming_case(c, [&] { return read_poses_or_points(poses); });
    for (size_t i = 0; found.are_points && i < found.poses.size(); ++i) {
      const std::string& name = found.poses[i].name;
      auto at = std::ranges::find(config.structures, name, &hdn::StructureConfig::name);
      if (at == config.structures.end() && has_names) continue;
      if (at == config.structures.end()) at = config.structures.insert(at, {name});
      if (!at->stages.empty()) continue;
      at->stages.assign(static_cast<size_t>(config.halvings) + 1, hdn::LevelStages::kPosition);
    }
  }
  // Models do not depend on the order of the cases.
  if (!has_names) std::ranges::sort(config.structures, {}, &hdn::StructureConfig::name);
  return config;
}

/// Returns the share of the cases with a candidate near the truth among the first n, by n.
std::vector<double> recall(const hdn::StageReport& stage, int most) {
  std::vector<double> share(static_cast<size_t>(most), 0);
  if (stage.first_positive.empty()) return share;
  for (int n = 0; n < most; ++n) {
    const auto found = std::count_if(stage.first_positive.begin(), stage.first_positive.end(),
                                     [&](int rank) { return rank >= 0 && rank <= n; });
    share[static_cast<size_t>(n)] =
        static_cast<double>(found) / static_cast<double>(stage.first_positive.size());
  }
  return share;
}

std::string name_of(const hdn::StageReport& stage, const hdn::Model& model) {
  return stage.structure + formatted(", %.4g mm, ", model.spacing_mm(stage.level)) +
         models::enumerator_name(stage.kind);
}

RgbImage recall_plot(const hdn::TrainReport& report, const hdn::Model& model) {
  constexpr int kMaximum = 200;
  std::vector<picture::Curve> curves;
  for (const hdn::StageReport& stage : report.stages) {
    if (stage.first_positive.empty()) continue;
    picture::Curve& curve = curves.emplace_back();
    curve.name = name_of(stage, model);
    curve.y = recall(stage, kMaximum);
    for (int n = 1; n <= kMaximum; ++n) curve.x.push_back(n);
  }
  picture::PlotOptions options;
  options.width = 1000;
  options.height = 700;
  options.title = "cross-validated recall of each detector";
  options.x_label = "candidates that are looked at";
  options.y_label = "share of cases with one near the truth";
  return picture::plot(curves, options);
}

void add_report(const hdn::Model& model, const hdn::TrainReport& report, Outputs& outputs) {
  Json structures, detectors = Json::array();
  for (const hdn::StructureReport& s : report.structures) {
    structures[s.structure] = {{"cases", s.cases},
                               {"failures", s.failures},
                               {"centre_error_mm", s.centre_mm},
                               {"rotation_error_deg", s.rotation_deg}};
  }
  for (const hdn::StageReport& s : report.stages) {
    const std::vector<double> share = recall(s, 200);
    detectors.push_back({{"structure", s.structure},
                         {"spacing_mm", model.spacing_mm(s.level)},
                         {"stage", models::enumerator_name(s.kind)},
                         {"cases", s.cases},
                         {"positives", s.positives},
                         {"negatives", s.negatives},
                         {"cases_without_positive", s.added_truth},
                         {"recall_1", share[0]},
                         {"recall_10", share[9]},
                         {"recall_50", share[49]},
                         {"recall_200", share[199]},
                         {"seconds_features", s.seconds_features},
                         {"seconds_trees", s.seconds_trees},
                         {"seconds_detection", s.seconds_detection}});
  }
  outputs.report("cross_validation", structures);
  outputs.report("detectors", detectors);
}

/// Warns where many cases had to be helped, and of structures that are often not found.
void warn_of_weakness(const hdn::TrainReport& report, const hdn::Model& model,
                      const Context& context) {
  for (const hdn::StructureReport& s : report.structures) {
    if (s.failures * 10 <= s.cases) continue;
    context.warn("'" + s.structure + "' is missed in " + std::to_string(s.failures) + " of " +
                 std::to_string(s.cases) +
                 " cases by detectors that have not learned from them; give more or more similar "
                 "cases");
  }
  const hdn::StageReport* worst = nullptr;
  int64_t weak = 0;
  for (const hdn::StageReport& stage : report.stages) {
    if (stage.added_truth * 20 <= stage.cases) continue;
    ++weak;
    if (worst == nullptr || stage.added_truth > worst->added_truth) worst = &stage;
  }
  if (worst == nullptr) return;
  context.warn("no candidate was near the truth, which was added, in some cases of " +
               std::to_string(weak) + " of " + std::to_string(report.stages.size()) +
               " detectors, the most in " + name_of(*worst, model) + ": " +
               std::to_string(worst->added_truth) + " of " + std::to_string(worst->cases));
}

}  // namespace

Outputs train_hdn(const TrainingFiles& files, const hdn::HdnConfig& config,
                  const voxels::TrainConfig& shared, const Context& context) {
  const TrainingCases cases = training_cases(
      files, {}, [&](const Case& c, const Grid& grid) { return read_case(c, files, grid); });
  const TrainResult result = train_network(cases, with_points(files, config), shared,
                                           training_run(files, context), context);
  const auto& model = std::get<hdn::Model>(*result.model);
  warn_of_weakness(*result.network, model, context);
  Outputs outputs = training_outputs(files, result);
  add_report(model, *result.network, outputs);
  outputs.add(files.plot, [picture = recall_plot(*result.network, model)](const std::string& path) {
    write_png(path, picture);
  });
  return outputs;
}

Plan plan_hdn_training(const TrainingFiles& files, hdn::HdnConfig config,
                       const voxels::TrainConfig& shared, const Context& context) {
  config = with_points(files, std::move(config));
  const hdn::Model model = start_network(config, shared, files.labels, context.seed);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm", "truth"}};
  std::vector<bool> occurs(model.structures.size(), false);
  std::set<int> seen;
  const auto look = [&](const Case& c) {
    const Grid grid = cases::probe_one_volume(c.image, cases::options_of_case(c, files.read)).grid;
    image::model_grid(grid, model.space, "'" + c.image + "'");
    const TrainingCase one = read_case(c, files, grid);
    const std::vector<bool> has = structures_of(one, model, seen);
    for (size_t s = 0; s < occurs.size(); ++s) occurs[s] = occurs[s] || has[s];
    plan.table.push_back({c.id, cases::size_cell(grid), cases::spacing_cell(grid),
                          one.labels.empty() ? "poses" : "label map"});
  };
  for (const Case& c : files.cases) {
    note_failure(plan, "case '" + c.id + "': ", [&] { look(c); });
    context.throw_if_stopped("stopped");
  }
  for (size_t s = 0; s < occurs.size() && plan.problems.empty(); ++s) {
    note_failure(plan, "", [&] {
      if (!seen.empty()) check_labels(model.structures[s].labels, seen, "hdn/structures/labels");
      if (!occurs[s]) hdn::throw_missing(model.structures[s].name);
    });
  }
  plan.notes.push_back("levels: " + std::to_string(model.levels()) +
                       ", structures: " + std::to_string(model.structures.size()));
  return plan;
}

}  // namespace larch::pipeline
