// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_training.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <set>
#include <utility>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"
#include "larch/io/image/image.h"
#include "larch/models/container.h"
#include "larch/models/pbt_file.h"
#include "larch/pbt/train/mine.h"
#include "larch/pbt/train/pool.h"
#include "larch/pipeline/survey.h"
#include "larch/pipeline/training_plot.h"

namespace larch::pipeline {
namespace {

/// The model and the checkpoint must not replace what they are made from.
void check_not_a_case(const Case& c, const std::string& output) {
  for (const std::string& input : {c.image, c.label}) {
    std::error_code ignored;
    if (output.empty() || !std::filesystem::equivalent(input, output, ignored)) continue;
    throw UsageError("'" + output + "' is one of the training volumes; give another name");
  }
}

void check_cases(const TrainingFiles& files) {
  if (files.cases.empty()) throw InputError("the list of training volumes is empty");
  for (const Case& c : files.cases) {
    if (c.label.empty()) {
      throw InputError("'" + c.image + "' has no label file: training needs the column 'label'");
    }
    check_not_a_case(c, files.output);
    check_not_a_case(c, files.checkpoint);
  }
}

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
    for (int axis = 0; axis < 3; ++axis) {
      along[axis].push_back(turned.spacing_mm[axis]);
    }
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

void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key) {
  for (const int value : wanted) {
    if (seen.count(value) > 0) continue;
    std::string found;
    for (const int s : seen) found += (found.empty() ? "" : ", ") + std::to_string(s);
    throw InputError(std::string(key) + ": the label " + std::to_string(value) +
                     " never occurs in the training labels, which hold " + found);
  }
}

/// Identifies all that the result depends on. `digests`: of the volumes, in any order.
std::string fingerprint(std::vector<std::string> digests, const pbt::TrainConfig& config,
                        const Context& context) {
  std::sort(digests.begin(), digests.end());
  std::string text = config::to_json(config).dump() + "\nseed " + std::to_string(context.seed);
  for (const std::string& digest : digests) text += "\n" + digest;
  Sha256 sha;
  sha.update(text.data(), text.size());
  return hex(sha.digest());
}

void throw_if_stopped(const Context& context) {
  if (!context.stop_requested()) return;
  throw Stopped("stopped while reading", static_cast<ExitCode>(context.stop->load()));
}

/// Where the checkpoint that --resume asks for is not there the run begins at the root, with a
/// warning: jobs that are started again and again give --resume from their first run on, but a name
/// that is mistyped must not pass unseen.
bool has_checkpoint(const TrainingFiles& files, const Context& context) {
  if (!files.resume || files.checkpoint.empty()) return false;
  if (is_file(files.checkpoint)) return true;
  context.warn("--resume: there is no checkpoint '" + files.checkpoint +
               "': starting from the root; unless this is the first run, see whether --checkpoint "
               "names the file");
  return false;
}

}  // namespace

pbt::Model train_pbt(const TrainingFiles& files, const pbt::TrainConfig& config,
                     pbt::TrainReport* report, const Context& context) {
  check_cases(files);
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
    throw_if_stopped(context);
  }
  check_labels(config.labels.positive, seen, "labels/positive");
  pbt::sort_by_digest(volumes);

  std::vector<std::string> digests;
  digests.reserve(volumes.size());
  for (const pbt::TrainingVolume& volume : volumes) digests.push_back(volume.digest);
  const std::string print = fingerprint(digests, config, context);
  pbt::TrainHooks hooks;
  pbt::PartialModel resumed;
  if (has_checkpoint(files, context)) {
    resumed = models::read_partial(files.checkpoint, print);
    hooks.resume = &resumed;
    context.info("going on from '" + files.checkpoint + "', which has " +
                 std::to_string(resumed.finished) + " nodes");
  }
  if (!files.checkpoint.empty()) {
    hooks.seconds = 5;
    remove_leftovers_once(folder_of(files.checkpoint), context);
    hooks.after_node = [&](const pbt::PartialModel& partial) {
      write_atomically(files.checkpoint, [&](const std::string& temporary) {
        models::write_partial(temporary, partial, print);
      });
    };
  }
  pbt::TrainReport own_report;
  if (report == nullptr) report = &own_report;
  pbt::Model model = pbt::train(volumes, space, config, hooks, report, context);
  if (config.validation.fraction > 0 && report->held_out_volumes == 0) {
    context.warn("validation/fraction: " + std::to_string(volumes.size()) +
                 " volumes are too few to hold one out; the model is not validated or pruned");
  }
  model.info.tool_version = version();
  model.info.training_config_json = config::to_json(config).dump();
  return model;
}

void remove_checkpoint(const std::string& path) {
  std::string start(models::kHeaderBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (file && models::kind_in_header(start) == models::kPbtCheckpointKind) remove_output(path);
}

namespace {

/// Voxels of a case by what they are for the training, on the grid of the image.
struct ClassCounts {
  int64_t positive = 0, other = 0, ignored = 0;
};

ClassCounts classes_of(const LabelCounts& counts, const pbt::LabelConfig& config) {
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

/// The table of the cases, and what can be said of their labels together.
void describe_cases(const std::vector<Case>& cases, const std::vector<SurveyedCase>& surveyed,
                    const pbt::TrainConfig& config, Plan& plan) {
  plan.table = {{"id", "voxels", "spacing_mm", "class", "other", "ignored", "labels"}};
  ClassCounts all;
  std::set<int> seen;
  for (size_t i = 0; i < cases.size(); ++i) {
    const SurveyedCase& s = surveyed[i];
    const ClassCounts classes = classes_of(s.labels, config.labels);
    all.positive += classes.positive;
    all.other += classes.other;
    for (const auto& [label, voxels] : s.labels) seen.insert(label);
    plan.table.push_back({cases[i].id, size_cell(s.image.grid), spacing_cell(s.image.grid),
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

/// Seconds for each feature, sample and round: of one processor, and of a GPU. Measured with the
/// presets; features that are computed once for each node are in it.
constexpr double kCpuSeconds = 0.25e-9;
constexpr double kGpuSeconds = 1e-12;
/// Seconds of one processor for each voxel that is read, resampled and integrated.
constexpr double kVoxelSeconds = 150e-9;

/// Bytes of a voxel of the image while it is read, and of one in model space while it is made.
constexpr int64_t kReading = 12, kResampling = 8;
/// Bytes of a voxel in model space that are kept: its value and its class.
constexpr int64_t kKept = 3;
/// Bytes of a posterior, of which mining has one per voxel of a volume.
constexpr int64_t kPosterior = 4;
/// Bytes of a sample (id, mass, class, its entries in the lists of nodes), and of its place in each
/// channel, which is made before it goes to the device.
constexpr int64_t kPerSample = 48, kPerPlace = 16;
/// Bytes of a feature of the pool, with its taps and those of its patches.
constexpr int64_t kPerFeature = 512;

/// Samples that all volumes together give at most.
int64_t drawn_samples(const std::vector<SurveyedCase>& surveyed, const image::ModelSpace& space,
                      const pbt::SampleConfig& config) {
  int64_t drawn = 0;
  for (const SurveyedCase& s : surveyed) {
    drawn += std::min(image::model_grid(s.image.grid, space).voxels(),
                      int64_t{config.positives_per_volume} + config.negatives_per_volume);
  }
  return drawn;
}

/// Samples that a node is boosted on at most.
int64_t selected_samples(int64_t drawn, const pbt::TreeConfig& config) {
  return std::min(drawn, int64_t{config.selected_positives} + config.selected_negatives);
}

int64_t features_of_node(const pbt::TrainConfig& config) {
  return config.tree.node_features > 0 ? std::min(config.tree.node_features, config.features.count)
                                       : config.features.count;
}

/// Bytes of the host at most: the largest of what reading, integrating, growing and mining take
/// beside the volumes. The channels of all volumes, the image of a channel before it is integrated
/// and the feature matrix are on the device of the training.
int64_t training_memory(const std::vector<SurveyedCase>& surveyed, const image::ModelSpace& space,
                        const pbt::TrainConfig& config, const Device& device) {
  const auto channels = pbt::channel_specs(config.features);
  const int pad = config.features.window / 2 + 1;
  const auto on_host = [&](int64_t bytes) { return device.is_cuda() ? 0 : bytes; };
  std::vector<Vec3i> sizes;
  int64_t kept = 0, reading = 0, one_integral = 0, image_of_channel = 0, most = 0;
  for (const SurveyedCase& s : surveyed) {
    const Grid grid = image::model_grid(s.image.grid, space);
    sizes.push_back(grid.size);
    kept += kKept * grid.voxels();
    reading = std::max(reading, kReading * s.image.grid.voxels() + kResampling * grid.voxels());
    one_integral =
        std::max(one_integral,
                 on_host(4 * image::total_elements(image::layouts_for(grid.size, channels, pad))));
    image_of_channel =
        std::max(image_of_channel, on_host(image::channel_image_bytes(grid.size, channels)));
    most = std::max(most, grid.voxels());
  }
  const int64_t integrals = on_host(4 * pbt::layouts_of_volumes(sizes, channels, pad).elements);
  const int64_t per_sample = kPerSample + kPerPlace * static_cast<int64_t>(channels.size());
  const int64_t drawn = drawn_samples(surveyed, space, config.samples);
  const int64_t matrix = on_host(features_of_node(config) * selected_samples(drawn, config.tree));
  const int64_t mining = config.mining.enabled
                             ? one_integral + image_of_channel + kPosterior * most +
                                   std::min(most, pbt::kMinedAtOnce) * per_sample
                             : 0;
  const int64_t growing =
      drawn * per_sample + kPerFeature * config.features.count + std::max(matrix, mining);
  return kept + std::max(reading, integrals + std::max(image_of_channel, growing));
}

/// Seconds at most: every tree is full, every node has its samples.
double training_seconds(const std::vector<SurveyedCase>& surveyed, const image::ModelSpace& space,
                        const pbt::TrainConfig& config, const Context& context) {
  double voxels = 0;
  for (const SurveyedCase& s : surveyed) {
    voxels += static_cast<double>(s.image.grid.voxels() +
                                  image::model_grid(s.image.grid, space).voxels());
  }
  const double trees =
      config.classifier == pbt::ClassifierKind::kEnsemble ? config.ensemble.trees : 1;
  const int64_t drawn = drawn_samples(surveyed, space, config.samples);
  const double most_nodes =
      std::max(1.0, static_cast<double>(drawn) / std::max(1, config.tree.min_samples));
  double rounds = 0, nodes = 1;
  for (int depth = 0; depth < config.tree.depth; ++depth, nodes *= 2) {
    const auto& by_depth = config.tree.rounds;
    const size_t at = std::min(by_depth.size() - 1, static_cast<size_t>(depth));
    rounds += std::min(nodes, most_nodes) * by_depth[at];
  }
  const double threads = context.threads;
  const double speed = context.device.is_cuda() ? kGpuSeconds : kCpuSeconds / threads;
  const auto codes = static_cast<double>(features_of_node(config)) *
                     static_cast<double>(selected_samples(drawn, config.tree));
  return trees * rounds * codes * speed + voxels * kVoxelSeconds / threads;
}

/// Throws InputError, as the run does, unless the checkpoint is one of these volumes, configuration
/// and seed. That is known from the voxels, so all volumes are read, one after the other.
void check_checkpoint(TrainingFiles files, const image::ModelSpace& space,
                      const pbt::TrainConfig& config, const Context& context, Plan& plan) {
  files.read.warn = nullptr;  // the headers' warnings were given
  std::vector<std::string> digests;
  digests.reserve(files.cases.size());
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    digests.push_back(read_case(c, files, space, config.labels, seen, context).digest);
    throw_if_stopped(context);
  }
  const pbt::PartialModel partial =
      models::read_partial(files.checkpoint, fingerprint(std::move(digests), config, context));
  plan.notes.push_back("would go on from '" + files.checkpoint + "', which has " +
                       std::to_string(partial.finished) + " nodes");
}

}  // namespace

Plan plan_training(const TrainingFiles& files, const pbt::TrainConfig& config,
                   const Context& context) {
  check_cases(files);
  pbt::check_config(config, context.seed);
  SurveyRequest request;
  request.labels = true;
  request.read = files.read;
  const std::vector<SurveyedCase> surveyed = survey(files.cases, request, context);
  Plan plan;
  add_problems(files.cases, surveyed, plan);
  describe_cases(files.cases, surveyed, config, plan);
  if (!plan.problems.empty()) return plan;
  std::vector<Grid> grids;
  grids.reserve(surveyed.size());
  for (const SurveyedCase& s : surveyed) grids.push_back(s.image.grid);
  const image::ModelSpace space = model_space(grids, config.space);
  char text[96];
  std::snprintf(text, sizeof text, "model space: voxels of %.4gx%.4gx%.4g mm", space.spacing_mm.x,
                space.spacing_mm.y, space.spacing_mm.z);
  plan.notes.emplace_back(text);
  plan.memory_bytes = training_memory(surveyed, space, config, context.device);
  plan.seconds = training_seconds(surveyed, space, config, context);
  if (has_checkpoint(files, context)) check_checkpoint(files, space, config, context, plan);
  return plan;
}

Outputs training_outputs(const std::string& output, const pbt::Model& model,
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
    outputs.metric("pruned_nodes", static_cast<double>(report.pruned_nodes))
        .metric("held_out_log_loss", report.held_out_log_loss)
        .metric("held_out_auc", report.held_out_auc);
  }
  outputs.add(output, [model](const std::string& path) { models::write_model(path, model); });
  return outputs;
}

void add_plot(const std::string& path, const pbt::Model& model, Outputs& outputs) {
  outputs.add(path, [picture = history_plot(model)](const std::string& temporary) {
    write_png(temporary, picture);
  });
}

}  // namespace larch::pipeline
