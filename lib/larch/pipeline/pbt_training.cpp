// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_training.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/app/failures.h"
#include "larch/app/records/case_record.h"
#include "larch/cases/case_loop.h"
#include "larch/cases/case_page.h"
#include "larch/cases/images.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/detect.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/models/model_file.h"
#include "larch/models/training_plot.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/case_labels.h"
#include "larch/pipeline/components.h"
#include "larch/pipeline/structures.h"
#include "larch/voxels/pool.h"

namespace larch::pipeline {
namespace {

/// Returns what is left out of a label map because of its data set; adds its labels to `seen`.
std::vector<int> left_out(const TrainingFiles& files, const Case& c, const std::set<int>& in_map,
                          std::set<int>& seen, const voxels::LabelConfig& labels,
                          const Context& context) {
  std::vector<int> named = labels.named_values();
  named.insert(named.end(), labels.positive.begin(), labels.positive.end());
  if (labels.background) named.push_back(*labels.background);
  return left_out_labels(files, c, in_map, named, seen, context);
}

/// Returns the cases of a training of these files, which must outlive them.
TrainingCases voxel_cases(const TrainingFiles& files, const voxels::TrainConfig& config,
                          const Context& context) {
  const std::vector<std::string>& components = config.space.components;
  const auto seen = std::make_shared<std::set<int>>();
  const auto truth = [&](const Case& c, const Grid& grid) {
    return TrainingCase{c.image, {}, read_case_labels(c, grid, files.labels, files.read)};
  };
  TrainingCases cases = training_cases(files, components, truth);
  cases.complete = [&, seen](size_t i, TrainingCase& one) {
    one.left_out =
        left_out(files, files.cases[i], labels_in(one.labels), *seen, config.labels, context);
  };
  cases.side_by_side = true;
  ReadOptions quiet = files.read;
  quiet.warn = nullptr;  // the reading of images and labels will say it
  cases.grid = [&files, &components, quiet](size_t i) {
    return probe_components(files.cases[i], components, quiet);
  };
  cases.labels = [&files, quiet, grid = cases.grid](size_t i) {
    const Case& c = files.cases[i];
    return naming_case(c, [&] { return read_case_labels(c, grid(i), files.labels, quiet); });
  };
  return cases;
}

/// Returns what pbt-detect finds in a case by default, for the page, and adds its picture with the
/// truth.
cases::PageCase held_out_case(const TrainingFiles& files, const Case& c, const Model& model,
                              Outputs& outputs, const Context& context) {
  const LabelTable table = model.structures();
  DetectRequest request;
  request.shown = true;
  request.name = "'" + c.image + "'";
  const Detection found =
      detect(model, read_components(c, model.components(), files.read), request, context);
  const LabelVolume truth = read_case_labels(c, found.labels.grid(), files.labels, files.read);
  Outputs figures;
  add_structures(found.labels, table, figures);
  add_scores(found.labels, truth, table, &model, context, figures);
  const LabelVolume reference = compared_labels(truth, table, &model);
  const picture::QcOptions options{.colours = table, .reference = &reference};
  const auto picture =
      std::make_shared<RgbImage>(picture::qc_picture(found.shown, found.labels, options));
  outputs.add_companion(held_out_picture(files.held_out, c),
                        [picture](const std::string& path) { write_png(path, *picture); });
  const bool is_found = found.voxels >= request.config.structure.min_voxels;
  std::map<std::string, std::string> cells{{"id", c.id},
                                           {"status", is_found ? "ok" : "rejected"},
                                           {"message", is_found ? "" : "nothing was detected"},
                                           {"dice", figures.figure("dice")}};
  const nlohmann::ordered_json larch{{"App", "pbt-train"},
                                     {"Build", build_info()},
                                     {"CommandLine", files.command},
                                     {"Structures", detail::structures_json(figures)},
                                     {"Outputs", {{{"Name", c.id + ".png"}}}}};
  return {std::move(cells), cases::story_of(larch, "")};
}

/// Adds the page of the held-out cases of a model, and its pictures.
void add_held_out(const TrainingFiles& given, const TrainResult& result, Outputs& outputs,
                  const Context& context) {
  if (given.held_out.empty()) return;
  TrainingFiles files = given;
  files.read.warn = nullptr;  // the training has said it
  Context quiet = context;
  quiet.progress_sink = {};
  const Model model = open_model(*result.model, context.device);
  const std::string name = std::filesystem::path(files.output).filename().string();
  const auto all = std::make_shared<std::vector<cases::PageCase>>();
  outputs.add(detail::page_name(files.held_out), [=](const std::string& path) {
    write_file(path, cases::case_page("Held-out cases of " + name, {"id", "dice"}, *all));
  });
  for (const size_t i : result.held_out) {
    context.progress(0, "held-out case '" + files.cases[i].id + "'");
    // The model is worth more than its page, which tells of a case that fails.
    try {
      all->push_back(held_out_case(files, files.cases[i], model, outputs, quiet));
    } catch (...) {
      const detail::Failure failure = detail::failure_of(std::current_exception());
      if (failure.stopped || !failure.expected) throw;
      const std::string why = in_one_line(failure), id = files.cases[i].id;
      context.warn("held-out case '" + id + "': " + why);
      all->push_back({{{"id", id}, {"status", "failed"}, {"message", why}}, {}});
    }
  }
}

}  // namespace

std::string held_out_picture(const std::string& folder, const Case& c) {
  return (std::filesystem::path(folder) / (c.id + ".png")).string();
}

Outputs train_voxels(const TrainingFiles& files, const voxels::TrainConfig& config,
                     const Context& context) {
  const TrainResult result = train_trees(voxel_cases(files, config, context), config,
                                         training_run(files, context), context);
  Outputs outputs = training_outputs(files, result);
  if (const auto* forest = std::get_if<forest::Model>(result.model.get())) {
    auto dice = nlohmann::ordered_json::object();
    for (const auto& [name, value] : result.class_dice) dice[name] = value;
    if (!dice.empty()) outputs.report("held_out_dice_by_class", dice);
    if (const auto by_depth = forest::depth_accuracies(forest->info); !by_depth.empty()) {
      outputs.report("held_out_accuracy_by_depth", by_depth);
    }
  } else {
    auto depths = nlohmann::ordered_json::array();
    for (const auto& [log_loss, auc] :
         voxels::depth_scores(std::get<pbt::Model>(*result.model).info)) {
      depths.push_back({{"depth", depths.size()}, {"log_loss", log_loss}, {"auc", auc}});
    }
    if (!depths.empty()) outputs.report("held_out_by_depth", depths);
  }
  add_plot(files.plot, *result.model, outputs);
  add_held_out(files, result, outputs, context);
  return outputs;
}

namespace {

/// Voxels of a case by what they are for the training, on the grid of the image.
struct ClassCounts {
  int64_t positive = 0, other = 0, ignored = 0;
};

ClassCounts classes_of(const std::map<int32_t, int64_t>& counts,
                       const voxels::LabelConfig& config) {
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
std::vector<SurveyedCase> survey(const TrainingFiles& files, const voxels::TrainConfig& config,
                                 const Context& context) {
  std::vector<SurveyedCase> found(files.cases.size());
  cases::CaseLoop loop;
  loop.count = found.size();
  loop.size = [](size_t) { return cases::CaseSize{}; };
  loop.work = [&](size_t i, const Context&) {
    const Case& c = files.cases[i];
    const Grid grid = probe_components(c, config.space.components, files.read);
    found[i].labels = count_labels(read_case_labels(c, grid, files.labels, files.read));
    found[i].grid = grid;
  };
  loop.failed = [&](size_t i, const std::exception_ptr& error) {
    found[i].failure = detail::failure_of(error);
    return true;
  };
  cases::run_case_loop(loop, context);
  context.throw_if_stopped("stopped while reading");
  return found;
}

/// Returns the first labels of a case, for the table.
std::string labels_cell(const std::map<int32_t, int64_t>& counts) {
  std::string text;
  int shown = 0;
  for (const auto& [label, voxels] : counts) {
    if (shown++ == 8) return text + ",...";
    text += (text.empty() ? "" : ",") + std::to_string(label);
  }
  return text.empty() ? "-" : text;
}

/// The table of the cases, their problems, and what can be said of their labels together. Chooses
/// the classifier.
void describe_cases(const TrainingFiles& files, const std::vector<SurveyedCase>& surveyed,
                    voxels::TrainConfig& config, Plan& plan, const Context& context) {
  const std::vector<Case>& cases = files.cases;
  plan.table = {{"id", "voxels", "spacing_mm", "class", "other", "ignored", "labels"}};
  ClassCounts all;
  std::set<int> seen, values;
  for (const SurveyedCase& s : surveyed) {
    for (const auto& [label, voxels] : s.labels) values.insert(label);
  }
  if (!files.labels.empty()) values = label_values(voxel_cases(files, config, context), config);
  choose_classifier(config, values, context);
  voxels::check_config(config, context.seed);
  for (size_t i = 0; i < cases.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    if (s.failure) {
      if (plan.problems.empty()) plan.code = s.failure->code;
      plan.problems.push_back("case '" + cases[i].id + "': " + detail::in_one_line(*s.failure));
    }
    std::set<int> in_map;
    for (const auto& [label, voxels] : s.labels) in_map.insert(label);
    const auto out = left_out(files, cases[i], in_map, seen, config.labels, context);
    config.labels.ignore.insert(config.labels.ignore.end(), out.begin(), out.end());
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
    check_labels(config.labels.named_values(), seen, "labels/names");
    if (config.classifier == voxels::ClassifierKind::kForest && config.labels.positive.empty()) {
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

}  // namespace

Plan plan_training(const TrainingFiles& files, voxels::TrainConfig config, const Context& context) {
  voxels::check_config(config, context.seed);
  const std::vector<SurveyedCase> surveyed = survey(files, config, context);
  Plan plan;
  describe_cases(files, surveyed, config, plan, context);
  if (!plan.problems.empty()) return plan;
  std::vector<Grid> grids;
  grids.reserve(surveyed.size());
  for (const SurveyedCase& s : surveyed) grids.push_back(s.grid);
  const image::ModelSpace space = model_space(grids, config.space);
  const Vec3d& mm = space.spacing_mm;
  plan.notes.push_back(formatted("model space: voxels of %.4gx%.4gx%.4g mm", mm.x, mm.y, mm.z));
  note_failure(plan, "",
               [&] { plan.notes.push_back(memory_of_training(grids, space, config, context)); });
  return plan;
}

void add_plot(const std::string& path, const models::AnyModel& model, Outputs& outputs) {
  const auto* forest = std::get_if<forest::Model>(&model);
  const auto* trees = std::get_if<pbt::Model>(&model);
  if (forest == nullptr && trees == nullptr) {
    throw InputError("--plot: only models of voxels keep the history of their training");
  }
  outputs.add(path, [picture = forest != nullptr ? models::forest_plot(*forest)
                                                 : models::history_plot(*trees)](
                        const std::string& temporary) { write_png(temporary, picture); });
}

}  // namespace larch::pipeline
