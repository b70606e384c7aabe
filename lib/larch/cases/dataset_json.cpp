// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/dataset_json.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::json;
using io::bad;

/// More channels are a mistake: each case is asked for as many files.
constexpr size_t kMaximumChannels = 10'000;
constexpr const char* kOtherPart = "; for the training cases give --dataset-part training";

/// Tells whether a file is one that macOS keeps beside another one (AppleDouble), and takes it
/// down.
bool is_left_out(const std::string& file, std::vector<std::string>& left_out) {
  const bool is_of_macos = fs::path(file).filename().string().starts_with("._");
  if (is_of_macos) left_out.push_back(file);
  return is_of_macos;
}

void require_file(const std::string& path, const std::string& file) {
  const std::string why = why_missing(file);
  if (!why.empty()) bad(path, "the file '" + file + "' " + why);
}

/// Returns the number from 0 on that a whole text is; none if it is another text.
std::optional<int32_t> number_of(const std::string& text) {
  int32_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last || number < 0) return std::nullopt;
  return number;
}

/// Names of the channels: {"0": "CT"}, ["CT"] or "CT".
std::vector<std::string> channels_of(const std::string& path, const Json& dataset) {
  for (const std::string key : {"channel_names", "modality"}) {
    const auto found = dataset.find(key);
    if (found == dataset.end()) continue;
    if (found->is_string()) return {found->get<std::string>()};
    const std::string where = "/" + key + ": expected {\"0\": NAME, \"1\": NAME, ...}";
    if (!found->is_structured() || found->size() > kMaximumChannels) bad(path, where);
    std::vector<std::string> names(found->size());
    std::vector<bool> seen(found->size(), false);
    for (const auto& [number, name] : found->items()) {  // of a list: its places
      const auto at = number_of(number);
      const size_t place = at ? static_cast<size_t>(*at) : names.size();
      if (place >= names.size() || !name.is_string() || seen[place]) bad(path, where);
      seen[place] = true;
      names[place] = name.get<std::string>();
    }
    return names;
  }
  return {};
}

int32_t label_value(const std::string& path, const std::string& name, const Json& value) {
  const bool is_label =
      value.is_number_integer() && value >= 0 && value <= std::numeric_limits<int32_t>::max();
  if (!is_label) bad(path, "/labels/" + name + ": expected a label, a whole number from 0 on");
  return value.get<int32_t>();
}

/// {"liver": 1} and {"both": [1, 2]}, or the other way round: {"1": "liver"}.
std::vector<DatasetLabel> labels_of(const std::string& path, const Json& dataset) {
  std::vector<DatasetLabel> labels;
  const auto found = dataset.find("labels");
  if (found == dataset.end()) return labels;
  if (!found->is_object()) bad(path, "/labels: expected an object such as {\"liver\": 1}");
  for (const auto& [key, value] : found->items()) {
    DatasetLabel label{key, {}};
    if (value.is_string()) {
      const auto number = number_of(key);
      if (!number) {
        bad(path, "/labels/" + key + ": expected a label, a whole number from 0 on, as the key");
      }
      label = {value.get<std::string>(), {*number}};
    } else if (value.is_array()) {
      for (const Json& one : value) label.values.push_back(label_value(path, key, one));
      if (label.values.empty()) bad(path, "/labels/" + key + ": a region without labels");
    } else {
      label.values.push_back(label_value(path, key, value));
    }
    labels.push_back(std::move(label));
  }
  std::ranges::sort(labels, {},
                    [](const DatasetLabel& label) { return std::pair(label.values, label.name); });
  return labels;
}

std::string text_of(const std::string& path, const Json& object, const char* key,
                    const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string()) {
    bad(path, where + ": expected an object with the strings image and label");
  }
  return found->get<std::string>();
}

/// "<stem>_0001<ending>" of channel 1.
std::string channel_file(const fs::path& stem, size_t channel, const std::string& ending) {
  return stem.string() + formatted("_%04zu", channel) + ending;
}

/// Returns the files of an image of a list "training": itself, or as nnU-Net names one per channel.
std::vector<std::string> files_of(const std::string& path, const std::string& image,
                                  size_t channels) {
  const std::string ending = file_extension(image);
  const std::string stem = image.substr(0, image.size() - ending.size());
  std::vector<std::string> files{image};
  if (!why_missing(image).empty() && why_missing(channel_file(stem, 0, ending)).empty()) {
    files.clear();
    for (size_t i = 0; i < std::max<size_t>(1, channels); ++i) {
      files.push_back(channel_file(stem, i, ending));
    }
  }
  for (const std::string& file : files) require_file(path, file);
  return files;
}

/// Of the list "training" {image, label}; of the list "test" images, by name or as {image}.
std::vector<DatasetCase> listed_cases(const std::string& path, const Json& list, DatasetPart part,
                                      size_t channels, std::vector<std::string>& left_out) {
  const bool is_test = part == DatasetPart::kTest;
  std::vector<DatasetCase> cases;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = (is_test ? "/test/" : "/training/") + std::to_string(i);
    const std::string name = is_test && list[i].is_string()
                                 ? list[i].get<std::string>()
                                 : text_of(path, list[i], "image", where);
    const std::string image = io::beside(path, name);
    if (is_left_out(image, left_out)) continue;
    DatasetCase found;
    if (!is_test) found.label = io::beside(path, text_of(path, list[i], "label", where));
    const std::string file = fs::path(image).filename().string();
    found.id = file.substr(0, file.size() - file_extension(file).size());
    if (found.id.empty()) {
      bad(path, where + ": the image '" + name +
                    "' has no name that a case could be called by; name a file");
    }
    found.images = files_of(path, image, channels);
    if (!is_test) require_file(path, found.label);
    cases.push_back(std::move(found));
  }
  return cases;
}

/// {"dataset": {<id>: {"images": [...], "label": ...}}}.
std::vector<DatasetCase> named_cases(const std::string& path, const Json& named, size_t channels,
                                     std::vector<std::string>& left_out) {
  std::vector<DatasetCase> cases;
  for (const auto& [id, files] : named.items()) {
    if (is_left_out(id, left_out)) continue;
    const std::string where = "/dataset/" + id;
    const auto images = files.is_object() ? files.find("images") : files.end();
    if (!files.is_object() || images == files.end() || !images->is_array()) {
      bad(path, where + ": expected an object with the list images and the string label");
    }
    DatasetCase found;
    found.id = id;
    found.label = io::beside(path, text_of(path, files, "label", where));
    for (const Json& image : *images) {
      if (!image.is_string()) bad(path, where + "/images: expected strings");
      found.images.push_back(io::beside(path, image.get<std::string>()));
      require_file(path, found.images.back());
    }
    if (id.empty() || found.images.size() != std::max<size_t>(1, channels)) {
      bad(path, where + ": expected an id and one image per channel");
    }
    require_file(path, found.label);
    cases.push_back(std::move(found));
  }
  return cases;
}

/// Returns the files of the folder imagesTs or imagesTr.
std::vector<DatasetCase> nnunet_cases(const std::string& path, const Json& dataset,
                                      DatasetPart part, size_t channels,
                                      std::vector<std::string>& left_out) {
  const bool is_test = part == DatasetPart::kTest;
  if (!dataset["file_ending"].is_string()) bad(path, "/file_ending: expected a string");
  const auto ending = dataset["file_ending"].get<std::string>();
  const std::string suffix = channel_file("", 0, ending);
  const fs::path folder = fs::path(path).parent_path();
  const fs::path images = folder / (is_test ? "imagesTs" : "imagesTr");
  if (ending.empty() || !is_folder(images.string())) {
    bad(path, "the folder '" + images.string() + "' or the file ending is missing" +
                  (is_test ? kOtherPart : ""));
  }
  std::vector<DatasetCase> cases;
  for (const std::string& image : files_in(images.string())) {
    const std::string name = fs::path(image).filename().string();
    if (name.size() <= suffix.size() || !name.ends_with(suffix)) continue;
    if (is_left_out(image, left_out)) continue;
    DatasetCase found;
    found.id = name.substr(0, name.size() - suffix.size());
    found.images.push_back(image);
    for (size_t i = 1; i < channels; ++i) {
      found.images.push_back(channel_file(images / found.id, i, ending));
      require_file(path, found.images.back());
    }
    if (!is_test) {
      found.label = (folder / "labelsTr" / (found.id + ending)).string();
      require_file(path, found.label);
    }
    cases.push_back(std::move(found));
  }
  std::ranges::sort(cases, {}, &DatasetCase::id);
  return cases;
}

size_t chosen_channel(const Dataset& dataset, const std::string& channel) {
  const std::vector<std::string>& names = dataset.channels;
  std::string list;  // "0 T1, 1 T2"
  for (size_t i = 0; i < names.size(); ++i) {
    list += (i > 0 ? ", " : "") + std::to_string(i) + " " + names[i];
  }
  const size_t count = std::max<size_t>(1, names.size());
  const std::string have =
      "'" + dataset.path + "' has " + std::to_string(count) + " channels (" + list + ")";
  if (channel.empty()) {
    if (names.size() <= 1) return 0;
    throw UsageError(have + ", and one is taken: choose it by name or number with --channel");
  }
  if (std::ranges::count(names, channel) > 1) {
    throw UsageError("--channel: " + have + ", of which several are called '" + channel +
                     "'; give the number");
  }
  const auto named = std::ranges::find(names, channel);
  if (named != names.end()) return static_cast<size_t>(named - names.begin());
  const auto number = number_of(channel);
  if (number && static_cast<size_t>(*number) < count) {
    return static_cast<size_t>(*number);
  }
  throw UsageError("--channel: " + have + ", none of which is '" + channel + "'");
}

}  // namespace

std::string dataset_file_of(const std::string& folder) {
  return (fs::path(folder) / "dataset.json").string();
}

Dataset read_dataset(const std::string& given, DatasetPart part) {
  const std::string path = is_folder(given) ? dataset_file_of(given) : given;
  const std::string text = read_file(path);
  refuse_placeholder(path, text);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    bad(path, std::string("not valid JSON: ") + error.what());
  }
  if (!json.is_object()) bad(path, "expected a JSON object, a dataset.json");
  Dataset dataset{path, channels_of(path, json), labels_of(path, json), {}, {}};
  const size_t channels = dataset.channels.size();
  const bool is_test = part == DatasetPart::kTest;
  const std::string list = is_test ? "test" : "training";
  const bool is_nnunet = json.contains("file_ending");
  std::vector<std::string> left_out;
  if (json.contains(list) && json[list].is_array() && !(is_nnunet && json[list].empty())) {
    dataset.cases = listed_cases(path, json[list], part, channels, left_out);
  } else if (!is_test && json.contains("dataset") && json["dataset"].is_object()) {
    dataset.cases = named_cases(path, json["dataset"], channels, left_out);
  } else if (is_nnunet) {
    dataset.cases = nnunet_cases(path, json, part, channels, left_out);
  } else {
    bad(path, "neither a list '" + list + "' (Decathlon) nor 'file_ending' (nnU-Net version 2)" +
                  (is_test ? kOtherPart : ""));
  }
  if (dataset.cases.empty()) {
    bad(path, "the data set has no " + list + " cases" + (is_test ? kOtherPart : ""));
  }
  if (!left_out.empty()) {
    dataset.warnings.push_back("'" + path + "': " + std::to_string(left_out.size()) +
                               " files that macOS made, such as '" + left_out.front() +
                               "', hold no image and are left out");
  }
  const auto count = json.find(is_test ? "numTest" : "numTraining");
  if (count != json.end() && count->is_number() && *count != dataset.cases.size()) {
    dataset.warnings.push_back("'" + path + "': " + count.key() + " is " + count->dump() +
                               ", and there are " + std::to_string(dataset.cases.size()) +
                               " cases; see whether files are missing");
  }
  std::set<std::string> ids;
  for (const DatasetCase& c : dataset.cases) {
    if (!ids.insert(c.id).second) {
      bad(path, "two cases have the id '" + c.id + "'; rename one of them");
    }
  }
  return dataset;
}

OneChannel one_channel(const Dataset& dataset, const std::string& channel) {
  const size_t chosen = chosen_channel(dataset, channel);
  OneChannel one;
  for (const DatasetCase& c : dataset.cases) {
    if (c.images.size() != dataset.cases.front().images.size()) {
      bad(dataset.path, "some cases have one file for all channels, others one per channel");
    }
    const bool in_one_file = c.images.size() == 1 && dataset.channels.size() > 1;
    if (in_one_file) one.frame = static_cast<int>(chosen) + 1;
    one.cases.push_back({c.id, c.images[in_one_file ? 0 : chosen], c.label});
  }
  return one;
}

std::vector<Case> all_channels(const Dataset& dataset) {
  one_channel(dataset, "0");  // checks the files
  std::vector<Case> cases;
  for (const DatasetCase& c : dataset.cases) {
    Case& one = cases.emplace_back(Case{c.id, c.images[0], c.label});
    one.channels = dataset.channels;
    for (size_t k = 1; k < c.images.size(); ++k) {
      one.further["image" + std::to_string(k + 1)] = c.images[k];
    }
  }
  return cases;
}

std::string labels_text(const std::vector<DatasetLabel>& labels) {
  std::string text;
  for (const DatasetLabel& label : labels) {
    std::string values;
    for (const int32_t value : label.values) {
      values += (values.empty() ? "" : "+") + std::to_string(value);
    }
    text += (text.empty() ? "" : ", ") + values + " " + label.name;
  }
  return text;
}

}  // namespace larch
