// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/cases/case_list.h"
#include "larch/cases/images.h"
#include "larch/cases/listed_cases.h"
#include "larch/config/config.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/models/json_layout.h"
#include "larch/models/model_file.h"
#include "larch/pipeline/boundary_training.h"
#include "larch/pipeline/case_labels.h"
#include "larch/pipeline/components.h"
#include "larch/pipeline/hdn_training.h"
#include "larch/pipeline/pbt_training.h"

namespace {

using namespace larch;

/// The kinds of models.
enum class ModelKind { kVoxels, kHdn, kBoundary };
constexpr auto enum_names(ModelKind*) {
  return std::to_array<EnumName<ModelKind>>({{ModelKind::kVoxels, "voxels"},
                                             {ModelKind::kHdn, "hdn"},
                                             {ModelKind::kBoundary, "boundary"}});
}

/// The keys of models of voxels stand at the top, where they have been before there was another
/// kind; hdn and boundary use classifier, space.intensity, tree and ensemble of them, and hdn uses
/// space.padding, features, mining and forest too.
struct ModelConfig {
  ModelKind model = ModelKind::kVoxels;
  ModelCard about;
  voxels::TrainConfig voxels;
  hdn::HdnConfig hdn;
  boundary::BoundaryConfig boundary;

  template <class F>
  void fields(F&& f) {
    f(Field{"model", model,
            "voxels (a class of voxels, for pbt-detect), hdn (poses of structures, for hdn-detect) "
            "or boundary (shapes and boundaries of structures, for boundary-refine)"});
    voxels.fields(f);
    f(Field{"about", about, "what the model says of itself"},
      Field{"hdn", hdn, "with model hdn: the network"},
      Field{"boundary", boundary, "with model boundary: shape and boundary"});
  }
  bool is_hdn() const { return model == ModelKind::kHdn; }
  bool is_boundary() const { return model == ModelKind::kBoundary; }
  /// Throws UsageError for keys of another model.
  void check() const {
    for (const auto* text : {&about.name, &about.licence, &about.intended_use}) {
      models::check_utf8(*text);
      if (escaped(*text) != *text) {
        throw UsageError("about: '" + *text + "' has control characters");
      }
    }
    if (!is_hdn()) config::require_default(hdn, "hdn.", "model hdn");
    if (!is_boundary()) config::require_default(boundary, "boundary.", "model boundary");
    if (model == ModelKind::kVoxels) return check_keys(voxels);
    const bool is_forest = voxels.classifier == voxels::ClassifierKind::kForest;
    if (is_forest && is_boundary()) {
      throw UsageError("--classifier decision-forest: boundary models have boosting trees alone");
    }
    config::require_default(voxels.labels, "labels.", "model voxels");
    config::require_default(voxels.samples, "samples.", "model voxels");
    config::require_default(voxels.validation, "validation.", "model voxels");
    if (!voxels.space.spacing_mm.empty() ||
        voxels.space.orientation != image::Orientation::kWorld) {
      throw UsageError(
          "--space.spacing_mm and --space.orientation are of model voxels; give "
          "--hdn.finest_spacing_mm or --boundary.finest_spacing_mm");
    }
    if (!voxels.features.filters.empty() || !voxels.space.components.empty()) {
      throw UsageError("--features.filters and --space.components are of model voxels");
    }
    if (voxels.experts) throw UsageError("--experts is of model voxels");
    config::require_default(voxels.fusion, "fusion.", "model voxels");
    if (is_boundary()) check_boundary_trees();
    if (is_forest) return check_stage_forests();
    check_keys(voxels);
  }
  /// Throws UsageError for keys without effect on the trees of a boundary, which choose from
  /// steerable features.
  void check_boundary_trees() const {
    const std::string others = "models voxels and hdn";
    config::require_default(voxels.features, "features.", others + "; see --boundary.features");
    config::require_default(voxels.mining, "mining.", others);
    config::require_default(voxels.space, "space.", others, {"padding"});
    config::require_default(voxels.ensemble, "ensemble.", others, {"bootstrap"});
    config::require_default(voxels.tree, "tree.", others, {"tap_cost", "allow_constant"});
  }
  /// Throws UsageError for keys that have no effect on the forests of a network, whose nodes choose
  /// from what boosting trees choose from.
  void check_stage_forests() const {
    voxels::TrainConfig stages = voxels;
    static_cast<tree::ForestConfig&>(stages.forest) = {};
    config::require_default(stages.forest, "forest.", "model voxels");
    stages.forest.pool = voxels::ForestPool::kHaar;
    check_keys(stages);
  }
  CaseColumns columns() const {
    CaseColumns columns{.label_required = !is_hdn()};
    if (model == ModelKind::kVoxels) columns.more = pipeline::component_columns();
    if (is_hdn()) columns.more = {{pipeline::kPosesColumn, true, false}};
    columns.more.push_back({pipeline::kGroupColumn});
    columns.more.push_back({kSeriesColumn});
    return columns;
  }
};

struct Options {
  cases::ImageList images{
      .list_help =
          "TSV or CSV with the columns image and label, or for hdn poses; group; or a folder",
      .dataset_help = "instead: a Decathlon or nnU-Net folder, or its dataset.json",
      .part = DatasetPart::kTraining};
  OutputFile output;
  InputFile start_model;
  bool resume = false;
  std::string checkpoint;
  Bytes memory{};
  std::optional<int> frame;
  cases::Reading reading;
  OutputPicture plot;
  OutputPage held_out;
  InputFile inspect;
  OutputFile export_json;
  ModelConfig config;
  std::string command{};

  template <class F>
  void fields(F&& f) {
    images.fields(f);
    constexpr const char* kModels = ".pbt,.forest,.hdn,.bnd";
    f(Field{"output,o", output, "the model (.pbt, .forest, .hdn, .bnd)"}.endings(kModels),
      Field{"start-model", start_model,
            "boundary: network (.hdn) with the structures, whose poses the refinement starts from"}
          .endings(".hdn"),
      Field{"resume", resume, "go on from the checkpoint of an interrupted run"}
          .no_effect_on_results(),
      Field{"checkpoint", checkpoint,
            "file that is written every few seconds, or after each detector or level (default: the "
            "output's name and .ckpt)"}
          .no_effect_on_results(),
      Field{"memory", memory,
            "what the training takes on its device at most, such as 8G; on the CPU that is all it "
            "takes, but for 7 bytes a voxel while experts learn. Volumes that do not fit are "
            "trained on in portions, with the same result; "
            "empty: what is free"}
          .no_effect_on_results(),
      frame_field(frame));
    reading.fields(f);
    f(Field{"plot", plot,
            "picture of the training: bound of the error after each round, by depth; hdn: recall "
            "of each detector; boundary: modes of the shape (.png)"},
      Field{"held-out", held_out,
            "folder for a page of the held-out cases (index.html) with what the model finds and, "
            "in white, the truth"},
      Field{"inspect", inspect, "print what a model file holds and stop"}.endings(kModels),
      Field{"export-json", export_json, "with --inspect: write the whole model as JSON, lossless"}
          .endings(".json"));
  }
  void check() const {
    if (plot) require_png_extension(plot, "--plot");
    if (inspect) {
      if (images || output || held_out) throw UsageError("--inspect does not train: give it alone");
      return;
    }
    if (export_json) throw UsageError("--export-json needs --inspect MODEL");
    images.check();
    config.check();
    if (start_model && !config.is_boundary()) {
      throw UsageError("--start-model is of model boundary");
    }
    if (held_out && config.model != ModelKind::kVoxels) {
      throw UsageError("--held-out is of model voxels");
    }
    if (!images) throw UsageError("give either --list or --dataset; see --help");
    if (!output) throw UsageError("--output is missing: the name of the model file");
    const std::filesystem::path model = output.path, partial = checkpoint;
    if (model.lexically_normal() == partial.lexically_normal()) {
      throw UsageError("--checkpoint and --output name the same file '" + output.path + "'");
    }
  }
  /// A model depends neither on the order of the volumes nor on their names.
  ListedInputs listed_inputs() const {
    if (inspect) return {};
    ReadOptions read;
    const CaseColumns columns = config.columns();
    const std::vector<Case> cases = images.select(columns, read);
    ListedInputs listed = cases::inputs_of_cases(cases, columns, /*order_matters=*/false);
    const std::string labels = labels_text(dataset_labels(cases));
    if (!labels.empty()) listed.inputs.push_back({"labels", images.dataset_path(), "", labels});
    return listed;
  }
  std::vector<DatasetLabel> dataset_labels(const std::vector<Case>& cases) const {
    if (images.dataset_path().empty()) return pipeline::classes_of_masks(cases);
    return read_dataset(images.dataset_path()).labels;
  }
  ModelConfig planned_config() const {
    ModelConfig planned = config;
    planned.voxels.memory_bytes = memory.count / 4 * 3;  // process and driver take some too
    return planned;
  }
  std::string checkpoint_path() const {
    return checkpoint.empty() ? output.path + ".ckpt" : checkpoint;
  }
  /// Without --resume, the checkpoint of an earlier run is not replaced unasked; where there is
  /// none its folder has to be there. Any case may be held out.
  std::vector<std::string> companions() const {
    if (inspect) return {};
    std::vector<std::string> names;
    if (!resume || !is_file(checkpoint_path())) names.push_back(checkpoint_path());
    if (!held_out) return names;
    ReadOptions read;
    for (const Case& c : images.select(config.columns(), read)) {
      cases::check_id(c.id);
      names.push_back(pipeline::held_out_picture(held_out, c));
    }
    return names;
  }
};

Outputs inspect(const Options& options) {
  const models::AnyModel model = models::read_any_model(options.inspect);
  Outputs outputs;
  if (options.export_json) {
    outputs.add(options.export_json, [text = models::export_json(model)](const std::string& path) {
      write_file(path, text);
    });
  }
  if (options.plot) pipeline::add_plot(options.plot, model, outputs);
  if (outputs.files.empty()) larch::detail::print(models::describe_model(model));
  return outputs;
}

pipeline::TrainingFiles files_of(const Options& options, const Context& context) {
  pipeline::TrainingFiles files;
  files.output = options.output;
  files.plot = options.plot;
  files.checkpoint = options.checkpoint_path();
  files.resume = options.resume;
  files.read = options.reading.read_options(context);
  files.read.frame = options.frame;
  files.read.has_frame_flag = true;
  files.cases = options.images.select(options.config.columns(), files.read);
  files.labels = options.dataset_labels(files.cases);
  if (options.images.dataset_path().empty() && !files.labels.empty()) {
    context.info("labels of the masks: " + labels_text(files.labels));
  }
  files.card = options.config.about;
  files.held_out = options.held_out;
  files.command = options.command;
  const auto count = static_cast<double>(files.cases.size());
  if (options.held_out &&
      std::lround(count * held_out_fraction(options.config.voxels, files.cases.size())) < 1) {
    throw UsageError("--held-out: of these " + std::to_string(files.cases.size()) +
                     " cases none is held out; --validation.fraction 0.3 holds some out");
  }
  return files;
}

Plan plan(const Options& options, const Context& context) {
  if (options.inspect) {
    models::read_any_model(options.inspect);
    return {};
  }
  const ModelConfig config = options.planned_config();
  const pipeline::TrainingFiles files = files_of(options, context);
  Plan plan = config.is_hdn()
                  ? pipeline::plan_hdn_training(files, config.hdn, config.voxels, context)
              : config.is_boundary()
                  ? pipeline::plan_boundary_training(files, config.boundary, config.voxels,
                                                     options.start_model, context)
                  : pipeline::plan_training(files, config.voxels, context);
  for (const std::string& note : options.images.notes()) plan.notes.push_back(note);
  return plan;
}

Outputs run(const Options& options, Context& context) {
  if (options.inspect) return inspect(options);
  const ModelConfig config = options.planned_config();
  const pipeline::TrainingFiles files = files_of(options, context);
  cases::give_memory_back(options.memory.count);
  if (config.is_boundary()) {
    return pipeline::train_boundary(files, config.boundary, config.voxels, options.start_model,
                                    context);
  }
  if (config.is_hdn()) return pipeline::train_hdn(files, config.hdn, config.voxels, context);
  return pipeline::train_voxels(files, config.voxels, context);
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "pbt-train";
  info.summary =
      "Train boosting trees that tell a structure from the rest, find its pose or its boundary.";
  info.description =
      "Learns from images and label maps. The model depends on the voxels, the configuration and "
      "the seed alone: not on the device, the number of threads, the order of the list or "
      "interruptions. A checkpoint is written every few seconds; a run that was stopped (SIGTERM, "
      "exit code 143) goes on with --resume and gives the same bytes.\n\nThe configuration says "
      "which labels are the class (labels), in what space the model works (space), the features, "
      "the samples drawn and the tree; with \"classifier\": \"pbt-ensemble\" several trees are "
      "trained and their probabilities averaged, with \"decision-forest\" a random forest of any "
      "number of classes (forest). With \"model\": \"hdn\" a hierarchical detection network is "
      "trained, in which boosting trees or decision forests find centre, orientation and size of "
      "structures (hdn). With \"model\": \"boundary\" shapes of structures are learned, and "
      "boosting "
      "trees that tell places on their surfaces (boundary). See --help-config.";
  info.examples = {
      "pbt-train --list train.tsv --output liver.pbt",
      "pbt-train --list train.tsv --output liver.pbt --config c.json --labels.positive 5",
      "pbt-train --list train.tsv --output scene.forest --classifier decision-forest",
      "pbt-train --list train.tsv --output head.hdn --config hdn.json --plot recall.png",
      "pbt-train --list train.tsv --output hip.bnd --config boundary.json --start-model hip.hdn"};
  info.results_version = 7;  // experts look again from 20 volumes on
  info.references = {
      "Tu, Probabilistic boosting-tree, ICCV 2005",
      "Sharp, Implementing decision trees and forests on a GPU, ECCV 2008",
      "Birkbeck, Sofka, Zhou, Fast boosting trees for classification, pose detection, and boundary "
      "detection on a GPU, CVPR workshops 2011"};
  Hooks<Options> hooks;
  hooks.run = run;
  hooks.plan = plan;
  hooks.check = [](const Options& o, const GivenFlags&) { o.check(); };
  hooks.listed_inputs = [](const Options& o) { return o.listed_inputs(); };
  hooks.companions = [](const Options& o) { return o.companions(); };
  hooks.committed = [](const Options& o) {
    if (o.output) pipeline::remove_checkpoint(o.checkpoint_path());
  };
  return run_app(info, argc, argv, hooks);
}
