// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/hdn_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/cases/images.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/markups/markups.h"
#include "larch/models/layout.h"
#include "larch/models/model_file.h"
#include "larch/pbt/train/pool.h"
#include "larch/picture/plot.h"
#include "larch/pipeline/training_cases.h"
#include "larch/pose/truth.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// A case as it is read: the image in model space, and where it has them poses by structure, or the
/// parts of its label map that hold the structures.
struct ReadCase {
  std::string name, group;
  Grid grid{};  ///< of the image as it is stored
  Volume<int16_t> voxels;
  std::vector<std::optional<Pose>> poses;
  std::vector<Volume<uint8_t>> masks;  ///< empty: the structure does not occur
};

/// Every label of a data set is a structure where none is named.
void complete(hdn::HdnConfig& config, const std::vector<DatasetLabel>& labels) {
  for (const hdn::StructureConfig& structure : config.structures) check_name(structure.name);
  if (!config.structures.empty()) return;
  for (const DatasetLabel& label : labels) {
    if (label.values == std::vector<int32_t>{0} || label.name == kBackgroundName ||
        label.name == kIgnoreName) {
      continue;
    }
    check_name(label.name);
    config.structures.push_back({label.name, {label.values.begin(), label.values.end()}});
  }
}

/// Throws UsageError for keys that another key leaves without effect.
void check_keys_of_network(const hdn::HdnConfig& config) {
  if (config.rotations != pose::RotationSet::kUniform) {
    config::require_default(config, "hdn.", "--hdn.rotations uniform", {"rotation_count"});
  }
  if (config.rotations != pose::RotationSet::kBall) {
    config::require_default(config, "hdn.", "--hdn.rotations ball", {"rotation_radius_deg"});
  }
  if (config.halvings == 0) {
    config::require_default(config, "hdn.", "--hdn.halvings above 0", {"keep"});
  }
  const bool has_parents =
      config.order == hdn::Order::kAuto ||
      std::any_of(config.structures.begin(), config.structures.end(),
                  [](const hdn::StructureConfig& s) { return !s.parent.empty(); });
  if (has_parents) return;
  config::require_default(config, "hdn.", "structures with a parent", {"prior_weight", "fallback"});
}

/// A network without detectors.
hdn::Model start_model(const hdn::HdnConfig& config, const hdn::SharedConfig& shared) {
  check_keys_of_network(config);
  hdn::Model model;
  const double mm = config.finest_spacing_mm;
  model.space = {{mm, mm, mm}, image::Orientation::kWorld, shared.space.intensity};
  model.padding = shared.space.padding;
  model.halvings = config.halvings;
  model.channels = pbt::channel_specs(shared.features);
  model.prior_weight = config.prior_weight;
  model.mean_of_first = config.aggregation == hdn::Aggregation::kMean ? 100 : 0;
  std::map<std::string, int32_t> places;
  for (const size_t i : hdn::check_config(config)) {
    const hdn::StructureConfig& from = config.structures[i];
    hdn::Structure structure;
    structure.name = from.name;
    structure.labels.assign(from.labels.begin(), from.labels.end());
    structure.parent = from.parent.empty() ? -1 : places.at(from.parent);
    places[from.name] = static_cast<int32_t>(model.structures.size());
    model.structures.push_back(structure);
  }
  return model;
}

void read_poses_of_case(const std::string& path, const hdn::Model& model, ReadCase& out) {
  const std::vector<DetectedPose> poses = read_any_poses(path);
  out.poses.resize(model.structures.size());
  for (size_t s = 0; s < model.structures.size(); ++s) {
    for (const DetectedPose& pose : poses) {
      if (pose.name == model.structures[s].name && pose.has_pose) out.poses[s] = pose.pose;
    }
  }
}

/// The file of poses of a case; empty: it has a label map. Throws InputError if it has neither.
std::string poses_of(const Case& c) {
  std::string poses = cell_of(c, kPosesColumn);
  if (poses.empty() && c.label.empty()) {
    throw InputError("it has neither a label map nor poses; add a column label or poses");
  }
  return poses;
}

/// Reads what a list says of the poses in an image on the grid `out.grid`.
void read_truth(const Case& c, const TrainingFiles& files, const hdn::Model& model,
                std::set<int>& seen, ReadCase& out) {
  const std::string poses = poses_of(c);
  if (!poses.empty()) return read_poses_of_case(poses, model, out);
  const LabelVolume labels = read_labels(c.label, label_options(files.read, out.grid));
  cases::require_same_grid(c.image, out.grid, c.label, labels.grid());
  seen.insert(labels.begin(), labels.end());
  for (const hdn::Structure& s : model.structures) {
    out.masks.push_back(pose::mask_of(labels, s.labels));
    if (!out.masks.back().empty()) {
      pose::check_mask(out.masks.back(), "'" + c.label + "': '" + s.name + "'");
    }
  }
}

void check_labels_of(const hdn::Structure& structure, const std::set<int>& seen) {
  if (seen.empty()) return;
  check_labels({structure.labels.begin(), structure.labels.end()}, seen, "hdn/structures/labels");
}

ReadCase read_case(const Case& c, const TrainingFiles& files, const hdn::Model& model,
                   std::set<int>& seen, const Context& context) {
  try {
    ReadCase out;
    out.name = c.id;
    out.group = cell_of(c, kGroupColumn);
    const Volume<float> image = read_volume<float>(c.image, cases::options_of_case(c, files.read));
    out.grid = image.grid();
    out.voxels = image::to_model_space(image, model.space, context, "'" + c.image + "'");
    read_truth(c, files, model, seen, out);
    return out;
  } catch (const Error& error) {
    std::throw_with_nested(
        Error(error.code(), "cannot use the case '" + c.id + "' (" + c.image + ")"));
  }
}

/// The pose of a symmetric shape that is turned the least, among all that it has.
Pose least_turned(const Pose& pose, const std::vector<pose::Symmetry>& symmetries) {
  Pose best = pose;
  for (const pose::Symmetry& symmetry : symmetries) {
    const Pose other = with_axes_renamed(pose, symmetry.rotation);
    if (std::abs(other.rotation.w) > std::abs(best.rotation.w)) best = other;
  }
  return best;
}

/// The poses of a structure in the cases that have masks of it.
void fit_structure(size_t s, const hdn::HdnConfig& config, std::vector<ReadCase>& all,
                   hdn::Model& model, const Context& context) {
  std::vector<Volume<uint8_t>> masks;
  std::vector<size_t> of;
  for (size_t c = 0; c < all.size(); ++c) {
    if (all[c].masks.empty()) continue;
    all[c].poses.resize(model.structures.size());
    if (all[c].masks[s].empty()) continue;
    masks.push_back(std::move(all[c].masks[s]));
    of.push_back(c);
  }
  if (masks.empty()) return;
  hdn::Structure& structure = model.structures[s];
  const hdn::StructureConfig& wanted =
      *std::find_if(config.structures.begin(), config.structures.end(),
                    [&](const auto& entry) { return entry.name == structure.name; });
  pose::PoseTruth truth = pose::fit_poses(masks, config.orientation, context);
  structure.mean_distance_mm = std::move(truth.mean_distance_mm);
  double residual = 0;
  for (size_t k = 0; k < of.size(); ++k) {
    const pose::CasePose& found = truth.cases[k];
    residual += found.residual_mm / static_cast<double>(of.size());
    all[of[k]].poses[s] =
        wanted.symmetric ? least_turned(found.pose, truth.symmetries) : found.pose;
    if (found.touches_border) {
      context.warn("case '" + all[of[k]].name + "': '" + structure.name +
                   "' touches the border of the image, so that its box may be too small");
    }
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.2f mm", residual);
  context.info("'" + structure.name + "' in " + std::to_string(of.size()) +
               " label maps: mean distance from the mean shape " + text);
  for (const pose::Symmetry& symmetry : truth.symmetries) {
    if (wanted.symmetric) structure.symmetries.push_back(symmetry.rotation);
  }
  if (!truth.symmetries.empty() && !wanted.symmetric) {
    context.warn("'" + structure.name + "' looks the same after " +
                 std::to_string(truth.symmetries.size()) +
                 " rotations that exchange the axes of its box, so that its orientation is one of "
                 "several; set \"symmetric\" for this structure");
  }
}

std::vector<hdn::TrainingCase> read_cases(const TrainingFiles& files, const hdn::HdnConfig& config,
                                          hdn::Model& model, const Context& context) {
  std::vector<ReadCase> all;
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    all.push_back(read_case(c, files, model, seen, context));
    context.throw_if_stopped("stopped while reading");
  }
  for (size_t s = 0; s < model.structures.size(); ++s) {
    check_labels_of(model.structures[s], seen);
    fit_structure(s, config, all, model, context);
  }
  std::vector<hdn::TrainingCase> cases;
  std::vector<std::string> group_of;
  for (ReadCase& c : all) {
    cases.push_back(hdn::make_training_case(c.name, std::move(c.voxels), c.grid, c.poses,
                                            config.halvings, context));
    vary_intensity(cases.back(), config.gain, config.offset, model.space.intensity, context.seed);
    group_of.push_back(c.group);
    c = {};
  }
  group_and_sort(cases, group_of);
  return cases;
}

/// Share of the cases with a candidate near the truth among the first n, by n.
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
  char mm[32];
  std::snprintf(mm, sizeof mm, "%.4g", model.spacing_mm(stage.level));
  return stage.structure + ", " + mm + " mm, " + models::enumerator_name(stage.kind);
}

RgbImage recall_plot(const hdn::TrainReport& report, const hdn::Model& model) {
  constexpr int kMost = 200;
  std::vector<picture::Curve> curves;
  for (const hdn::StageReport& stage : report.stages) {
    if (stage.first_positive.empty()) continue;
    picture::Curve& curve = curves.emplace_back();
    curve.name = name_of(stage, model);
    curve.y = recall(stage, kMost);
    for (int n = 1; n <= kMost; ++n) curve.x.push_back(n);
  }
  picture::PlotOptions options;
  options.width = 1000;
  options.height = 700;
  options.title = "cross-validated recall of each detector";
  options.x_label = "candidates that are looked at";
  options.y_label = "share of cases with one near the truth";
  return picture::plot(curves, options);
}

Outputs training_outputs(const TrainingFiles& files, const hdn::Model& model,
                         const hdn::TrainReport& report, size_t cases) {
  Outputs outputs;
  outputs.metric("training_cases", static_cast<double>(cases))
      .metric("structures", static_cast<double>(model.structures.size()))
      .metric("detectors", static_cast<double>(report.stages.size()));
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
  outputs.add(files.output, [model](const std::string& path) { models::write_model(path, model); });
  outputs.add(files.plot, [picture = recall_plot(report, model)](const std::string& path) {
    write_png(path, picture);
  });
  return outputs;
}

/// The settings as JSON.
std::string config_text(const hdn::HdnConfig& config, const hdn::SharedConfig& shared) {
  return Json{{"shared", config::to_json(shared)}, {"hdn", config::to_json(config)}}.dump();
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

Outputs train_hdn(const TrainingFiles& files, hdn::HdnConfig config,
                  const hdn::SharedConfig& shared, const std::vector<DatasetLabel>& labels,
                  const Context& context) {
  complete(config, labels);
  pbt::check_config(shared, context.seed);
  hdn::Model model = start_model(config, shared);
  std::vector<hdn::TrainingCase> cases = read_cases(files, config, model, context);
  const std::string settings = config_text(config, shared);
  std::vector<std::string> digests;
  digests.reserve(cases.size());
  for (const hdn::TrainingCase& c : cases) {
    digests.push_back(c.digest + " " + std::to_string(c.group));
  }
  const std::string print = fingerprint(settings, context.seed, digests);
  if (config.order == hdn::Order::kAuto) {
    hdn::choose_order(cases, model, config, shared, context);
  }
  hdn::TrainHooks hooks;
  const TrainingCheckpoint<hdn::PartialTraining> checkpoint(
      files, print,
      [](const hdn::PartialTraining& partial) {
        return std::to_string(partial.report.stages.size()) + " detectors";
      },
      context);
  hooks.resume = checkpoint.resumed();
  hooks.after_step = [&](const hdn::PartialTraining& partial) { checkpoint.write(partial); };
  hdn::TrainReport report;
  model = hdn::train_network(cases, model, config, shared, hooks, report, context);
  model.info.tool_version = version();
  model.info.training_config_json = settings;
  warn_of_weakness(report, model, context);
  return training_outputs(files, model, report, cases.size());
}

Plan plan_hdn_training(const TrainingFiles& files, hdn::HdnConfig config,
                       const hdn::SharedConfig& shared, const std::vector<DatasetLabel>& labels,
                       const Context& context) {
  complete(config, labels);
  pbt::check_config(shared, context.seed);
  const hdn::Model model = start_model(config, shared);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm", "truth"}};
  std::vector<bool> occurs(model.structures.size(), false);
  std::set<int> seen;
  const auto look = [&](const Case& c) {
    ReadCase read;
    read.grid = cases::probe_one_volume(c.image, cases::options_of_case(c, files.read)).grid;
    image::model_grid(read.grid, model.space, "'" + c.image + "'");
    read_truth(c, files, model, seen, read);
    for (size_t s = 0; s < occurs.size(); ++s) {
      if (read.masks.empty() ? read.poses[s].has_value() : !read.masks[s].empty()) occurs[s] = true;
    }
    plan.table.push_back({c.id, cases::size_cell(read.grid), cases::spacing_cell(read.grid),
                          read.masks.empty() ? "poses" : "label map"});
  };
  for (const Case& c : files.cases) {
    note_failure(plan, "case '" + c.id + "': ", [&] { look(c); });
    context.throw_if_stopped("stopped");
  }
  for (size_t s = 0; s < occurs.size() && plan.problems.empty(); ++s) {
    note_failure(plan, "", [&] {
      check_labels_of(model.structures[s], seen);
      if (!occurs[s]) hdn::throw_missing(model.structures[s].name);
    });
  }
  plan.notes.push_back("levels: " + std::to_string(model.levels()) +
                       ", structures: " + std::to_string(model.structures.size()));
  return plan;
}

}  // namespace larch::pipeline
