// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_training.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/app/failures.h"
#include "larch/cases/case_loop.h"
#include "larch/cases/images.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"
#include "larch/io/image/image.h"
#include "larch/models/container.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/train/pool.h"
#include "larch/pipeline/training_plot.h"

namespace larch::pipeline {
namespace {

/// `grids`: of the images; not looked at if the configuration gives the spacing.
image::ModelSpace model_space(const std::vector<Grid>& grids, const pbt::SpaceConfig& config) {
  image::ModelSpace space;
  space.orientation = config.orientation;
  space.intensity = config.intensity;
  if (!config.spacing_mm.empty()) {
    space.spacing_mm = {config.spacing_mm[0], config.spacing_mm[1], config.spacing_mm[2]};
    return space;
  }
  // In model space the axes may be permuted, so the spacing is taken after that. The size is of no
  // interest here, and not to be believed before the file is read.
  std::vector<double> along[3];
  for (Grid grid : grids) {
    image::ModelSpace as_stored = space;
    grid.size = {1, 1, 1};
    as_stored.spacing_mm = grid.spacing_mm;
    const Grid turned = image::model_grid(grid, as_stored);
    for (int axis = 0; axis < 3; ++axis) along[axis].push_back(turned.spacing_mm[axis]);
  }
  for (int axis = 0; axis < 3; ++axis) {
    std::sort(along[axis].begin(), along[axis].end());
    space.spacing_mm[axis] = along[axis][along[axis].size() / 2];
  }
  return space;
}

/// Reads one case; adds the label values that occur to `seen`.
pbt::TrainingVolume read_case(const Case& c, const TrainingFiles& files,
                              const image::ModelSpace& space, const pbt::LabelConfig& labels,
                              std::set<int>& seen, const Context& context) {
  try {
    const Volume<float> image = read_volume<float>(c.image, files.read);
    const LabelVolume label = read_labels(c.label, label_options(files.read));
    seen.insert(label.begin(), label.end());
    return pbt::make_training_volume(c.image, image, label, space, labels, context);
  } catch (const Error& error) {
    std::throw_with_nested(Error(
        error.code(), "cannot use the case '" + c.id + "' (" + c.image + ", " + c.label + ")"));
  }
}

/// The model, with the figures and the picture of its training.
Outputs training_outputs(const TrainingFiles& files, const pbt::Model& model,
                         const pbt::TrainReport& report) {
  Outputs outputs;
  outputs.metric("training_volumes", static_cast<double>(report.training_volumes))
      .metric("held_out_volumes", static_cast<double>(report.held_out_volumes))
      .metric("positive_samples", static_cast<double>(report.positive_samples))
      .metric("negative_samples", static_cast<double>(report.negative_samples))
      .metric("features", static_cast<double>(report.pool_features))
      .metric("trees", static_cast<double>(report.trees))
      .metric("nodes", static_cast<double>(report.nodes))
      .metric("weak_classifiers", static_cast<double>(report.weak_classifiers));
  if (report.held_out_volumes > 0) {
    outputs.metric("pruned_nodes", static_cast<double>(report.pruned_nodes));
    for (const std::string name : {"log_loss", "auc", "dice", "threshold"}) {
      if (const auto value = model.info.measured(name)) outputs.metric("held_out_" + name, *value);
    }
    auto depths = nlohmann::ordered_json::array();
    for (const pbt::DepthScore& score : pbt::depth_scores(model.info)) {
      depths.push_back(
          {{"depth", depths.size()}, {"log_loss", score.log_loss}, {"auc", score.auc}});
    }
    outputs.report("held_out_by_depth", depths);
  }
  outputs.add(files.output, [model](const std::string& path) { models::write_model(path, model); });
  add_plot(files.plot, model, outputs);
  return outputs;
}

}  // namespace

Outputs train_pbt(const TrainingFiles& files, const pbt::TrainConfig& config,
                  const Context& context) {
  check_names(files);
  pbt::check_config(config, context.seed);
  std::vector<Grid> grids;
  if (config.space.spacing_mm.empty()) {
    ReadOptions read = files.read;
    read.warn = nullptr;  // the reading itself will say it
    for (const Case& c : files.cases) grids.push_back(probe_image(c.image, read).grid);
  }
  const image::ModelSpace space = model_space(grids, config.space);
  std::vector<pbt::TrainingVolume> volumes;
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    volumes.push_back(read_case(c, files, space, config.labels, seen, context));
    context.throw_if_stopped("stopped while reading");
  }
  check_labels(config.labels.positive, seen, "labels/positive");
  pbt::sort_by_digest(volumes);

  std::vector<std::string> digests;
  digests.reserve(volumes.size());
  for (const pbt::TrainingVolume& volume : volumes) digests.push_back(volume.digest);
  const std::string print = fingerprint(config::to_json(config).dump(), context.seed, digests);
  pbt::TrainHooks hooks;
  pbt::PartialModel resumed;
  if (has_checkpoint(files, context)) {
    resumed = models::read_partial(files.checkpoint, print);
    hooks.resume = &resumed;
    context.info("going on from '" + files.checkpoint + "', which has " +
                 std::to_string(resumed.finished) + " nodes");
  }
  hooks.seconds = 5;
  remove_leftovers_once(folder_of(files.checkpoint), context);
  hooks.after_node = [&](const pbt::PartialModel& partial) {
    write_atomically(files.checkpoint, [&](const std::string& temporary) {
      models::write_partial(temporary, partial, print);
    });
  };
  pbt::TrainReport report;
  pbt::Model model = pbt::train(volumes, space, config, hooks, &report, context);
  if (config.validation.fraction > 0 && report.held_out_volumes == 0) {
    context.warn("validation/fraction: " + std::to_string(volumes.size()) +
                 " volumes are too few to hold one out; the model is not validated or pruned");
  }
  model.info.tool_version = version();
  model.info.training_config_json = config::to_json(config).dump();
  return training_outputs(files, model, report);
}

namespace {

/// Voxels of a case by what they are for the training, on the grid of the image.
struct ClassCounts {
  int64_t positive = 0, other = 0, ignored = 0;
};

ClassCounts classes_of(const std::map<int32_t, int64_t>& counts, const pbt::LabelConfig& config) {
  const auto holds = [](const std::vector<int>& values, int32_t label) {
    return std::find(values.begin(), values.end(), label) != values.end();
  };
  ClassCounts classes;
  for (const auto& [label, voxels] : counts) {
    const bool positive = config.positive.empty() ? label != 0 : holds(config.positive, label);
    (holds(config.ignore, label) ? classes.ignored
     : positive                  ? classes.positive
                                 : classes.other) += voxels;
  }
  return classes;
}

/// A case as its header and its label map tell it.
struct SurveyedCase {
  Grid grid{};
  std::map<int32_t, int64_t> labels{};       ///< voxels by label
  std::optional<detail::Failure> failure{};  ///< why the case cannot be used
};

/// Looks at all cases, several at a time.
std::vector<SurveyedCase> survey(const TrainingFiles& files, const Context& context) {
  std::vector<SurveyedCase> found(files.cases.size());
  cases::CaseLoop loop;
  loop.count = found.size();
  loop.size = [](size_t) { return cases::CaseSize{}; };
  loop.work = [&](size_t i, const cases::CaseContext&) {
    const Case& c = files.cases[i];
    const Grid grid = cases::probe_one_volume(c.image, files.read).grid;
    const LabelVolume labels = read_labels(c.label, label_options(files.read));
    cases::require_same_grid(c.image, grid, c.label, labels.grid());
    found[i].grid = grid;
    for (const int32_t label : labels) ++found[i].labels[label];
  };
  loop.failed = [&](size_t i, const std::exception_ptr& error) {
    found[i].failure = detail::failure_of(error);
    return true;
  };
  cases::run_case_loop(loop, context);
  context.throw_if_stopped("stopped while reading");
  return found;
}

/// The first labels of a case, for the table.
std::string labels_cell(const std::map<int32_t, int64_t>& counts) {
  std::string text;
  int shown = 0;
  for (const auto& [label, voxels] : counts) {
    if (shown++ == 8) return text + ",...";
    text += (text.empty() ? "" : ",") + std::to_string(label);
  }
  return text.empty() ? "-" : text;
}

/// The table of the cases, their problems, and what can be said of their labels together.
void describe_cases(const std::vector<Case>& cases, const std::vector<SurveyedCase>& surveyed,
                    const pbt::TrainConfig& config, Plan& plan) {
  plan.table = {{"id", "voxels", "spacing_mm", "class", "other", "ignored", "labels"}};
  ClassCounts all;
  std::set<int> seen;
  for (size_t i = 0; i < cases.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    if (s.failure) {
      if (plan.problems.empty()) plan.code = s.failure->code;
      plan.problems.push_back("case '" + cases[i].id + "': " + detail::in_one_line(*s.failure));
    }
    const ClassCounts classes = classes_of(s.labels, config.labels);
    all.positive += classes.positive;
    all.other += classes.other;
    for (const auto& [label, voxels] : s.labels) seen.insert(label);
    plan.table.push_back({cases[i].id, cases::size_cell(s.grid), cases::spacing_cell(s.grid),
                          std::to_string(classes.positive), std::to_string(classes.other),
                          std::to_string(classes.ignored), labels_cell(s.labels)});
  }
  if (!plan.problems.empty()) return;  // labels may be missing because a case could not be read
  try {
    check_labels(config.labels.positive, seen, "labels/positive");
    if ((all.positive == 0 || all.other == 0) && !config.tree.allow_constant) {
      throw InputError("the training volumes hold " + std::to_string(all.positive) +
                       " voxels of the class and " + std::to_string(all.other) +
                       " others; both are needed: check labels/positive and labels/ignore, or set "
                       "tree/allow_constant");
    }
  } catch (const Error& error) {
    plan.problems.emplace_back(error.what());
    plan.code = error.code();
  }
}

}  // namespace

Plan plan_training(const TrainingFiles& files, const pbt::TrainConfig& config,
                   const Context& context) {
  check_names(files);
  pbt::check_config(config, context.seed);
  const std::vector<SurveyedCase> surveyed = survey(files, context);
  Plan plan;
  describe_cases(files.cases, surveyed, config, plan);
  if (!plan.problems.empty()) return plan;
  std::vector<Grid> grids;
  grids.reserve(surveyed.size());
  for (const SurveyedCase& s : surveyed) grids.push_back(s.grid);
  const image::ModelSpace space = model_space(grids, config.space);
  char text[96];
  std::snprintf(text, sizeof text, "model space: voxels of %.4gx%.4gx%.4g mm", space.spacing_mm.x,
                space.spacing_mm.y, space.spacing_mm.z);
  plan.notes.emplace_back(text);
  return plan;
}

void add_plot(const std::string& path, const pbt::Model& model, Outputs& outputs) {
  outputs.add(path, [picture = history_plot(model)](const std::string& temporary) {
    write_png(temporary, picture);
  });
}

}  // namespace larch::pipeline
