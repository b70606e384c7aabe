// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/table/case_list.h"

namespace larch {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

void require_one_channel(const std::string& path, const json& dataset, const char* key) {
  const auto channels = dataset.find(key);
  if (channels != dataset.end() && channels->is_object() && channels->size() > 1) {
    bad(path, "the images have " + std::to_string(channels->size()) +
                  " channels; write one channel to a data set of its own");
  }
}

void require_file(const std::string& path, const std::string& file) {
  const std::string why = why_missing(file);
  if (!why.empty()) bad(path, "the file '" + file + "' " + why);
}

std::string stem(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name.substr(0, name.size() - file_extension(name).size());
}

std::vector<Case> decathlon_cases(const std::string& path, const json& training) {
  const fs::path folder = fs::path(path).parent_path();
  std::vector<Case> cases;
  for (size_t i = 0; i < training.size(); ++i) {
    const json& item = training[i];
    const std::string where = "/training/" + std::to_string(i);
    if (!item.is_object() || !item.contains("image") || !item["image"].is_string() ||
        !item.contains("label") || !item["label"].is_string()) {
      bad(path, where + ": expected an object with the strings image and label");
    }
    Case found;
    found.image = (folder / item["image"].get<std::string>()).lexically_normal().string();
    found.label = (folder / item["label"].get<std::string>()).lexically_normal().string();
    found.id = stem(found.image);
    if (found.id.empty()) {
      bad(path, where + ": the image '" + item["image"].get<std::string>() +
                    "' has no name that a case could be called by; name a file");
    }
    require_file(path, found.image);
    require_file(path, found.label);
    cases.push_back(std::move(found));
  }
  return cases;
}

std::vector<Case> nnunet_cases(const std::string& path, const json& dataset) {
  if (!dataset["file_ending"].is_string()) bad(path, "/file_ending: expected a string");
  const std::string ending = dataset["file_ending"].get<std::string>();
  const std::string suffix = "_0000" + ending;
  const fs::path folder = fs::path(path).parent_path();
  const fs::path images = folder / "imagesTr";
  if (ending.empty() || !is_folder(images.string())) {
    bad(path, "the folder '" + images.string() + "' or the file ending is missing");
  }
  std::vector<Case> cases;
  for (const std::string& image : files_in(images.string())) {
    const std::string name = fs::path(image).filename().string();
    if (name.size() <= suffix.size() || !name.ends_with(suffix)) continue;
    Case found;
    found.id = name.substr(0, name.size() - suffix.size());
    found.image = image;
    found.label = (folder / "labelsTr" / (found.id + ending)).string();
    require_file(path, found.label);
    cases.push_back(std::move(found));
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.id < b.id; });
  return cases;
}

}  // namespace

std::vector<Case> read_dataset_json(const std::string& path) {
  const std::string text = read_file(path);
  json dataset;
  try {
    dataset = json::parse(text);
  } catch (const json::exception& error) {
    bad(path, std::string("not valid JSON: ") + error.what());
  }
  if (!dataset.is_object()) bad(path, "expected a JSON object, a dataset.json");
  require_one_channel(path, dataset, "modality");
  require_one_channel(path, dataset, "channel_names");
  std::vector<Case> cases;
  if (dataset.contains("training") && dataset["training"].is_array()) {
    cases = decathlon_cases(path, dataset["training"]);
  } else if (dataset.contains("file_ending")) {
    cases = nnunet_cases(path, dataset);
  } else {
    bad(path, "neither a list 'training' (Decathlon) nor 'file_ending' (nnU-Net version 2)");
  }
  if (cases.empty()) bad(path, "the data set has no training cases");
  for (size_t i = 1; i < cases.size(); ++i) {
    const auto same = [&](const Case& other) { return other.id == cases[i].id; };
    if (std::any_of(cases.begin(), cases.begin() + static_cast<int64_t>(i), same)) {
      bad(path, "two cases have the id '" + cases[i].id + "'; rename one of them");
    }
  }
  return cases;
}

}  // namespace larch
