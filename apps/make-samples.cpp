// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <memory>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/io/file.h"
#include "larch/io/image.h"
#include "larch/phantom/organs.h"

namespace {

using namespace larch;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

enum class Kind { kOrgans };
constexpr auto enum_names(Kind*) {
  return std::to_array<EnumName<Kind>>({{Kind::kOrgans, "organs"}});
}

struct Options {
  OutputDir output_dir;
  Kind kind = Kind::kOrgans;
  int training = 12;
  int test = 4;
  std::string format = "nii.gz";
  phantom::OrgansConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"output-dir,o", output_dir, "folder for images, labels and lists"}.required(),
      Field{"kind", kind, "what is in the images"},
      Field{"training", training, "number of cases in train.tsv", 1, 10000},
      Field{"test", test, "number of cases in test.tsv", 0, 10000},
      Field{"format", format, "ending of the image files, such as nii.gz, nrrd or mha"});
  }
  void check() const { require_image_extension("case." + format); }
};

/// Makes the folders for images and labels; when the last owner goes, those that are still empty
/// are taken away again.
std::shared_ptr<void> make_folders(const std::string& root) {
  const auto remove_empty = [root](void*) {
    std::error_code ignored;
    for (const char* name : {"/images", "/labels"}) fs::remove(root + name, ignored);
  };
  std::shared_ptr<void> owner(nullptr, remove_empty);
  for (const char* name : {"/images", "/labels"}) {
    std::error_code error;
    fs::create_directories(root + name, error);
    if (error) throw OutputError("cannot make folder '" + root + name + "': " + error.message());
  }
  return owner;
}

std::string file_name(const Options& options, int number) {
  char text[32];
  std::snprintf(text, sizeof text, "case_%03d.", number);
  return text + options.format;
}

/// Lists of the cases [begin, end): lines of a TSV, and objects of a Decathlon dataset.json.
std::string tsv(const Options& options, int begin, int end) {
  std::string text = "image\tlabel\n";
  for (int i = begin; i < end; ++i) {
    const std::string name = file_name(options, i);
    text += "images/" + name + "\tlabels/" + name + "\n";
  }
  return text;
}

std::string dataset_json(const Options& options) {
  Json json{
      {"name", "Larch samples"},         {"description", "Procedural volumes with known truth"},
      {"tensorImageSize", "3D"},         {"modality", {{"0", "synthetic"}}},
      {"labels", {{"0", "background"}}}, {"numTraining", options.training},
      {"numTest", options.test}};
  for (const LabelEntry& entry : phantom::organs_label_table()) {
    json["labels"][std::to_string(entry.value)] = entry.name;
  }
  json["training"] = json["test"] = Json::array();
  for (int i = 0; i < options.training + options.test; ++i) {
    const std::string name = file_name(options, i);
    if (i < options.training) {
      json["training"].push_back({{"image", "./images/" + name}, {"label", "./labels/" + name}});
    } else {
      json["test"].push_back("./images/" + name);
    }
  }
  return json.dump(2) + "\n";
}

/// Files are made when they are written, one case at a time, so that memory holds only one.
void add_case(const Options& options, int number, const Context& context, Outputs& outputs) {
  const auto labels = std::make_shared<LabelVolume>();
  const std::string root = options.output_dir.path, name = file_name(options, number);
  outputs.add(root + "/images/" + name, [=, &options, &context](const std::string& path) {
    phantom::OrgansCase made =
        phantom::make_organs(options.config, context.seed, number, context.threads);
    *labels = std::move(made.labels);
    write_volume(path, made.image);
  });
  outputs.add(root + "/labels/" + name, [labels](const std::string& path) {
    write_labelmap(path, *labels, phantom::organs_label_table());
    *labels = {};
  });
}

Outputs run(const Options& options, Context& context) {
  const std::string root = options.output_dir.path;
  const auto folders = make_folders(root);
  const int cases = options.training + options.test;
  Outputs outputs;
  for (int i = 0; i < cases; ++i) add_case(options, i, context, outputs);
  const auto add_text = [&](const std::string& name, const std::string& text) {
    // The writers hold the folders, so that these outlive the run.
    outputs.add(root + "/" + name,
                [text, folders](const std::string& path) { write_file(path, text); });
  };
  add_text("train.tsv", tsv(options, 0, options.training));
  if (options.test > 0) add_text("test.tsv", tsv(options, options.training, cases));
  add_text("dataset.json", dataset_json(options));
  outputs.add(root + "/labels.tsv", [](const std::string& path) {
    write_label_table(path, phantom::organs_label_table());
  });
  return outputs.metric("cases", cases);
}

/// The images have two bytes for each voxel, the labels one.
Plan plan(const Options& options, const Context&, const CaseWriter&) {
  const auto& size = options.config.size;
  const int64_t voxels = int64_t{size[0]} * size[1] * size[2];
  Plan plan;
  plan.memory_bytes = 8 * voxels;
  for (int i = 0; i < options.training + options.test; ++i) {
    const std::string name = options.output_dir.path + "/" + file_name(options, i);
    plan.files.push_back({name, 3 * voxels, options.format != "nii"});
  }
  plan.notes.push_back(std::to_string(plan.files.size()) + " cases");
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  AppInfo info;
  info.name = "make-samples";
  info.summary = "Make sample volumes with known truth.";
  info.description =
      "Each image shows a body with an organ (label 1) and a distractor of the same mean "
      "intensity, "
      "so that no threshold finds the organ; a bright column, a cavity, noise and a smooth "
      "intensity field. The folder gets images/, labels/, train.tsv, test.tsv, dataset.json and "
      "labels.tsv. The same seed gives the same files.";
  info.examples = {"make-samples --output-dir samples",
                   "make-samples --output-dir large --size 128,128,80 --spacing_mm 1,1,1.5 "
                   "--training 40 --seed 7"};
  return run_app<Options>(info, argc, argv, run, plan);
}
