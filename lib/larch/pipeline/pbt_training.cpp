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
#include "larch/files/file.h"
#include "larch/forest/train.h"
#include "larch/io/image/image.h"
#include "larch/pbt/train/pool.h"
#include "larch/pipeline/components.h"
#include "larch/pipeline/training_cases.h"
#include "larch/pipeline/training_plot.h"
#include "larch/pipeline/voxel_defaults.h"

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

bool is_forest(const pbt::TrainConfig& config) {
  return config.classifier == pbt::ClassifierKind::kForest;
}

std::vector<int> named_values(const pbt::LabelConfig& labels) {
  std::vector<int> values;
  for (const pbt::ClassName& name : labels.names) values.push_back(name.value);
  return values;
}

/// Adds to `labels.ignore` what is left out of a label map because of its data set.
void leave_out(const TrainingFiles& files, const Case& c, const std::set<int>& in_map,
               std::set<int>& seen, pbt::LabelConfig& labels, const Context& context) {
  std::vector<int> named = named_values(labels);
  named.insert(named.end(), labels.positive.begin(), labels.positive.end());
  if (labels.background) named.push_back(*labels.background);
  for (const int label : left_out_labels(files, c, in_map, named, seen, context)) {
    const auto end = labels.ignore.end();
    if (std::find(labels.ignore.begin(), end, label) == end) labels.ignore.push_back(label);
  }
}

/// Calls fn, whose errors get the name of the case.
template <class Fn>
auto of_case(const Case& c, const Fn& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    std::throw_with_nested(Error(
        error.code(), "cannot use the case '" + c.id + "' (" + c.image + ", " + c.label + ")"));
  }
}

/// The values of label maps, those that a data set declares, or of as many as it takes to find two
/// beside the background.
std::set<int> label_values(const TrainingFiles& files, const pbt::TrainConfig& config) {
  std::set<int> values;
  for (const DatasetLabel& label : files.labels) {
    if (label.name == kIgnoreName || label.name == kBackgroundName) continue;
    values.insert(label.values.begin(), label.values.end());
  }
  ReadOptions read = files.read;
  read.warn = nullptr;  // the reading of images and labels will say it
  for (size_t i = 0; i < files.cases.size() && files.labels.empty(); ++i) {
    const Case& c = files.cases[i];
    of_case(c, [&] {
      const Grid grid = probe_components(c, config.space.components, read);
      const LabelVolume labels = read_labels(c.label, label_options(read, grid));
      values.insert(labels.begin(), labels.end());
    });
    for (const int ignored : config.labels.ignore) values.erase(ignored);
    if (values.size() > 1 + values.count(0)) break;
  }
  return values;
}

/// Reads one case; adds the label values that occur to `seen`, and those that are left out to
/// `labels`.
pbt::TrainingVolume read_case(const Case& c, const TrainingFiles& files,
                              const image::ModelSpace& space, pbt::TrainConfig& config,
                              std::set<int>& seen, const Context& context) {
  return of_case(c, [&] {
    const auto images = read_components(c, config.space.components, files.read);
    const LabelVolume label = read_labels(c.label, label_options(files.read, images[0].grid()));
    leave_out(files, c, {label.begin(), label.end()}, seen, config.labels, context);
    const auto make =
        is_forest(config)
            ? forest::make_training_volume
            : static_cast<decltype(&forest::make_training_volume)>(pbt::make_training_volume);
    pbt::TrainingVolume volume = make(c.image, images, label, space, config.labels, context);
    volume.group = cell_of(c, kGroupColumn);
    return volume;
  });
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

/// What a training has read.
struct Material {
  pbt::TrainConfig config;  ///< with what the data set says of its labels
  image::ModelSpace space;
  std::vector<pbt::TrainingVolume> volumes;  ///< sorted
  std::string fingerprint;
};

Material read_material(const TrainingFiles& files, const pbt::TrainConfig& config,
                       const Context& context) {
  pbt::check_config(config, context.seed);
  std::vector<Grid> grids;
  if (config.space.spacing_mm.empty()) {
    ReadOptions read = files.read;
    read.warn = nullptr;  // the reading itself will say it
    for (const Case& c : files.cases) {
      grids.push_back(probe_components(c, config.space.components, read));
    }
  }
  Material material{config, model_space(grids, config.space), {}, {}};
  std::set<int> values;
  if (asks_labels(config)) values = label_values(files, config);
  choose_classifier(material.config, values, context);
  pbt::check_config(material.config, context.seed);
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    material.volumes.push_back(read_case(c, files, material.space, material.config, seen, context));
    context.throw_if_stopped("stopped while reading");
  }
  // Models do not depend on the order of the list.
  std::vector<int>& ignored = material.config.labels.ignore;
  std::sort(ignored.begin() + static_cast<std::ptrdiff_t>(config.labels.ignore.size()),
            ignored.end());
  check_labels(config.labels.positive, seen, "labels/positive");
  check_labels(named_values(config.labels), seen, "labels/names");
  pbt::sort_by_digest(material.volumes);
  std::vector<std::string> digests;
  for (const pbt::TrainingVolume& volume : material.volumes)
    digests.push_back(volume.digest + volume.group);
  material.fingerprint = fingerprint(config::to_json(config).dump(), context.seed, digests);
  if (is_forest(material.config) && config.labels.positive.empty()) {
    take_names(files.labels, seen, material.config.labels, context);
  }
  fit_to_volumes(material.config, material.volumes, context);
  return material;
}

/// Completes what a model says of its training, and warns where nothing was held out.
void complete(pbt::ModelInfo& info, const pbt::TrainConfig& config, size_t volumes, size_t held_out,
              const Context& context) {
  info.tool_version = version();
  info.training_config_json = config::to_json(config).dump();
  if (*config.validation.fraction > 0 && held_out == 0) {
    context.warn("validation/fraction: " + std::to_string(volumes) +
                 " volumes are too few to hold one out; the model is not validated or pruned");
  }
}

Outputs train_forest(const TrainingFiles& files, const Material& material, const Context& context) {
  forest::TrainHooks hooks;
  const TrainingCheckpoint<forest::PartialForest> checkpoint(
      files, material.fingerprint,
      [](const forest::PartialForest& partial) {
        return std::to_string(partial.size()) + " trees";
      },
      context);
  hooks.resume = checkpoint.resumed();
  hooks.seconds = 5;
  hooks.after_step = [&](const forest::PartialForest& partial) { checkpoint.write(partial); };
  forest::TrainReport report;
  forest::Model model = forest::train_forest(material.volumes, material.space, material.config,
                                             hooks, &report, context);
  complete(model.info, material.config, material.volumes.size(), report.held_out_volumes, context);
  Outputs outputs;
  outputs.metric("training_volumes", static_cast<double>(report.training_volumes))
      .metric("held_out_volumes", static_cast<double>(report.held_out_volumes))
      .metric("samples", static_cast<double>(report.samples))
      .metric("classes", static_cast<double>(model.classes))
      .metric("trees", static_cast<double>(model.trees()))
      .metric("nodes", static_cast<double>(model.nodes.size()));
  for (const std::string name : {"accuracy", "class_accuracy", "dice", "threshold"}) {
    if (const auto value = model.info.measured(name)) outputs.metric("held_out_" + name, *value);
  }
  auto dice = nlohmann::ordered_json::object();
  for (size_t c = 0; c < report.class_dice.size(); ++c) {
    if (report.class_dice[c] >= 0) dice[model.class_table[c].name] = report.class_dice[c];
  }
  if (!dice.empty()) outputs.report("held_out_dice_by_class", dice);
  if (const auto by_depth = forest::depth_accuracies(model.info); !by_depth.empty()) {
    outputs.report("held_out_accuracy_by_depth", by_depth);
  }
  outputs.add(files.output, [model](const std::string& path) { models::write_model(path, model); });
  add_plot(files.plot, model, outputs);
  return outputs;
}

}  // namespace

Outputs train_pbt(const TrainingFiles& files, const pbt::TrainConfig& config,
                  const Context& context) {
  const Material material = read_material(files, config, context);
  if (is_forest(material.config)) return train_forest(files, material, context);
  pbt::TrainHooks hooks;
  const TrainingCheckpoint<pbt::PartialModel> checkpoint(
      files, material.fingerprint,
      [](const pbt::PartialModel& p) { return std::to_string(p.finished) + " nodes"; }, context);
  hooks.resume = checkpoint.resumed();
  hooks.seconds = 5;
  hooks.after_step = [&](const pbt::PartialModel& partial) { checkpoint.write(partial); };
  pbt::TrainReport report;
  pbt::Model model =
      pbt::train_trees(material.volumes, material.space, material.config, hooks, &report, context);
  complete(model.info, material.config, material.volumes.size(), report.held_out_volumes, context);
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
std::vector<SurveyedCase> survey(const TrainingFiles& files, const pbt::TrainConfig& config,
                                 const Context& context) {
  std::vector<SurveyedCase> found(files.cases.size());
  cases::CaseLoop loop;
  loop.count = found.size();
  loop.size = [](size_t) { return cases::CaseSize{}; };
  loop.work = [&](size_t i, const Context&) {
    const Case& c = files.cases[i];
    const Grid grid = probe_components(c, config.space.components, files.read);
    const LabelVolume labels = read_labels(c.label, label_options(files.read, grid));
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
void describe_cases(const TrainingFiles& files, const std::vector<SurveyedCase>& surveyed,
                    pbt::TrainConfig config, Plan& plan, const Context& context) {
  const std::vector<Case>& cases = files.cases;
  plan.table = {{"id", "voxels", "spacing_mm", "class", "other", "ignored", "labels"}};
  ClassCounts all;
  std::set<int> seen, values;
  for (const SurveyedCase& s : surveyed) {
    for (const auto& [label, voxels] : s.labels) values.insert(label);
  }
  choose_classifier(config, files.labels.empty() ? values : label_values(files, config), context);
  pbt::check_config(config, context.seed);
  for (size_t i = 0; i < cases.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    if (s.failure) {
      if (plan.problems.empty()) plan.code = s.failure->code;
      plan.problems.push_back("case '" + cases[i].id + "': " + detail::in_one_line(*s.failure));
    }
    std::set<int> in_map;
    for (const auto& [label, voxels] : s.labels) in_map.insert(label);
    leave_out(files, cases[i], in_map, seen, config.labels, context);
    const ClassCounts classes = classes_of(s.labels, config.labels);
    all.positive += classes.positive;
    all.other += classes.other;
    plan.table.push_back({cases[i].id, cases::size_cell(s.grid), cases::spacing_cell(s.grid),
                          std::to_string(classes.positive), std::to_string(classes.other),
                          std::to_string(classes.ignored), labels_cell(s.labels)});
  }
  if (!plan.problems.empty()) return;  // labels may be missing because a case could not be read
  try {
    check_labels(config.labels.positive, seen, "labels/positive");
    check_labels(named_values(config.labels), seen, "labels/names");
    if (is_forest(config) && config.labels.positive.empty()) {
      if (config.labels.background) {
        check_labels({*config.labels.background}, seen, "labels/background");
      }
      for (const int label : config.labels.ignore) seen.erase(label);
      if (seen.size() < 2) throw InputError("a forest needs voxels of two classes");
      return;
    }
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

/// Throws UsageError for keys without effect on decision forests.
void check_keys_of_forests(const pbt::TrainConfig& config) {
  config::require_default(config.tree, "tree.", "boosting trees");
  config::require_default(config.mining, "mining.", "boosting trees");
  config::require_default(config.samples, "samples.", "boosting trees");
  config::require_default(config.validation, "validation.", "boosting trees",
                          {"prune", "patience"});
  if (config.forest.pool == pbt::ForestPool::kBoxes) {
    config::require_default(config.features, "features.", "--forest.pool haar",
                            {"count", "window", "sizes"});
  } else {
    config::require_default(config.forest, "forest.", "--forest.pool boxes",
                            {"reach", "largest_box"});
  }
  if (config.labels.positive.empty()) {
    config::require_default(config.labels, "labels.", "forests with --labels.positive",
                            {"class_name", "class_value"});
  } else {
    config::require_default(config.labels, "labels.", "forests without --labels.positive",
                            {"background", "names"});
  }
}

/// Throws UsageError for keys that another key leaves without effect, whatever the classifier is.
void check_dependent_keys(const pbt::TrainConfig& config) {
  if (config.space.intensity.rule == image::IntensityKind::kWindow) {
    config::require_default(config.space.intensity, "space.intensity.",
                            "--space.intensity.rule percentile",
                            {"low_percentile", "high_percentile"});
  } else {
    config::require_default(config.space.intensity, "space.intensity.",
                            "--space.intensity.rule window", {"window_low", "window_high"});
  }
  if (config.features.channels.empty()) {
    config::require_default(config.features, "features.", "--features.channels",
                            {"pyramid_levels"});
  }
  if (config.tree.prior != tree::PriorKind::kValue) {
    config::require_default(config.tree, "tree.", "--tree.prior value", {"prior_value"});
  }
  if (config.validation.fraction == 0) {
    config::require_default(config.validation, "validation.", "--validation.fraction above 0",
                            {"prune", "patience"});
  }
  if (!config.mining.enabled) {
    config::require_default(config.mining, "mining.", "--mining.enabled", {"per_node"});
  }
}

}  // namespace

Plan plan_training(const TrainingFiles& files, const pbt::TrainConfig& config,
                   const Context& context) {
  pbt::check_config(config, context.seed);
  const std::vector<SurveyedCase> surveyed = survey(files, config, context);
  Plan plan;
  describe_cases(files, surveyed, config, plan, context);
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

void check_keys(const pbt::TrainConfig& config) {
  check_name(config.labels.class_name);
  for (const pbt::ClassName& c : config.labels.names) check_name(c.name);
  if (is_forest(config)) {
    check_keys_of_forests(config);
  } else if (config.classifier || !fits_forest(config)) {
    config::require_default(config.forest, "forest.", "classifier decision-forest");
    config::require_default(config.labels, "labels.", "classifier decision-forest",
                            {"background", "names"});
  }
  if (config.classifier != pbt::ClassifierKind::kEnsemble) {
    config::require_default(config.ensemble, "ensemble.", "classifier pbt-ensemble");
  }
  check_dependent_keys(config);
}

void add_plot(const std::string& path, const models::AnyModel& model, Outputs& outputs) {
  const auto* forest = std::get_if<forest::Model>(&model);
  const auto* trees = std::get_if<pbt::Model>(&model);
  if (forest == nullptr && trees == nullptr) {
    throw InputError("--plot: only models of voxels keep the history of their training");
  }
  outputs.add(path, [picture = forest != nullptr ? forest_plot(*forest) : history_plot(*trees)](
                        const std::string& temporary) { write_png(temporary, picture); });
}

}  // namespace larch::pipeline
