// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/sample_files.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::pipeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

std::string file_name(const SampleRequest& request, int number) {
  char text[32];
  std::snprintf(text, sizeof text, "case_%03d.", number);
  return text + request.format;
}

/// Lists of the cases [begin, end): lines of a TSV, and objects of a Decathlon dataset.json.
std::string tsv(const SampleRequest& request, int begin, int end) {
  std::string text = "image\tlabel\n";
  for (int i = begin; i < end; ++i) {
    const std::string name = file_name(request, i);
    text += "images/" + name + "\tlabels/" + name + "\n";
  }
  return text;
}

std::string dataset_json(const SampleRequest& request) {
  Json json{
      {"name", "Larch samples"},         {"description", "Procedural volumes with known truth"},
      {"tensorImageSize", "3D"},         {"modality", {{"0", "synthetic"}}},
      {"labels", {{"0", "background"}}}, {"numTraining", request.training},
      {"numTest", request.test}};
  for (const LabelEntry& entry : phantom::organs_label_table()) {
    json["labels"][std::to_string(entry.value)] = entry.name;
  }
  json["training"] = json["test"] = Json::array();
  for (int i = 0; i < request.cases(); ++i) {
    const std::string name = file_name(request, i);
    if (i < request.training) {
      json["training"].push_back({{"image", "./images/" + name}, {"label", "./labels/" + name}});
    } else {
      json["test"].push_back("./images/" + name);
    }
  }
  return json.dump(2) + "\n";
}

/// Files are made when they are written, one case at a time, so that memory holds only one.
void add_case(const SampleRequest& request, int number, const Context& context, Outputs& outputs) {
  const auto labels = std::make_shared<LabelVolume>();
  const std::string root = request.folder, name = file_name(request, number);
  outputs.add(root + "/images/" + name, [=, config = request.config, seed = context.seed,
                                         threads = context.threads](const std::string& path) {
    phantom::OrgansCase made = phantom::make_organs(config, seed, number, threads);
    *labels = std::move(made.labels);
    write_volume(path, made.image);
  });
  outputs.add(root + "/labels/" + name, [labels](const std::string& path) {
    write_labelmap(path, *labels, phantom::organs_label_table());
    *labels = {};
  });
}

}  // namespace

Outputs make_samples(const SampleRequest& request, const Context& context) {
  const std::string& root = request.folder;
  const auto folders = make_folders(root);
  const int cases = request.cases();
  Outputs outputs;
  for (int i = 0; i < cases; ++i) add_case(request, i, context, outputs);
  const auto add_text = [&](const std::string& name, const std::string& text) {
    // The writers hold the folders, so that these outlive the run.
    outputs.add(root + "/" + name,
                [text, folders](const std::string& path) { write_file(path, text); });
  };
  add_text("train.tsv", tsv(request, 0, request.training));
  if (request.test > 0) add_text("test.tsv", tsv(request, request.training, cases));
  add_text("dataset.json", dataset_json(request));
  outputs.add(root + "/labels.tsv", [](const std::string& path) {
    write_label_table(path, phantom::organs_label_table());
  });
  return outputs.metric("cases", cases);
}

Plan plan_samples(const SampleRequest& request) {
  const auto& size = request.config.size;
  const int64_t voxels = int64_t{size[0]} * size[1] * size[2];
  Plan plan;
  plan.memory_bytes = 8 * voxels;
  for (int i = 0; i < request.cases(); ++i) {
    // The image has two bytes per voxel, the label map one.
    const std::string name = request.folder + "/" + file_name(request, i);
    plan.files.push_back({name, 3 * voxels, request.format != "nii"});
  }
  plan.notes.push_back(std::to_string(plan.files.size()) + " cases");
  return plan;
}

}  // namespace larch::pipeline
