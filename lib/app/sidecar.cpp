// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/sidecar.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "larch/app/build_info.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

Json metrics_of(const Outputs& outputs) {
  Json metrics = Json::object();
  for (const Outputs::Text& item : outputs.metrics) metrics[item.name] = Json::parse(item.text);
  return metrics;
}

Json inputs_of(const RunRecord& record) {
  Json inputs = Json::array();
  for (const std::string& path : record.inputs) {
    Json input{{"Path", path}};
    const std::string digest = input_digest(path);
    if (!digest.empty()) input["SHA256"] = digest;
    for (const Outputs::Text& grid : record.outputs.grids) {
      if (grid.name == path) input["Grid"] = grid.text;
    }
    inputs.push_back(input);
  }
  return inputs;
}

double milliseconds_only(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

}  // namespace

std::string sidecar_name(const std::string& output) {
  return output + ".json";
}

std::string folder_sidecar_name(const std::string& folder) {
  return (fs::path(folder) / "larch.json").string();
}

std::vector<std::string> input_names(const std::vector<GivenPath>& paths, const CommandLine& line,
                                     const Outputs& outputs) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& path) {
    if (std::find(names.begin(), names.end(), path) == names.end()) names.push_back(path);
  };
  for (const GivenPath& given : paths) {
    if (!is_output(given.role)) add(given.path);
  }
  for (const InputFile& file : line.common.configs) {
    if (file.path != "-") add(file.path);
  }
  for (const std::string& path : outputs.inputs) add(path);
  return names;
}

std::string input_digest(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return sha256_of_file(path);
  if (!fs::is_directory(path, error)) return "";  // a pipe cannot be read again
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(path, error);
  for (std::error_code ignored; !error && at != fs::end(at); at.increment(error)) {
    if (at->is_regular_file(ignored)) files.push_back(at->path().lexically_relative(path).string());
  }
  if (error) {
    throw InputError("cannot read the folder '" + path + "': " + error.message() +
                     ": check the permissions of the folders below");
  }
  std::sort(files.begin(), files.end());
  Sha256 sum;
  for (const std::string& file : files) {
    const std::string row = sha256_of_file((fs::path(path) / file).string()) + "  " + file + "\n";
    sum.update(row.data(), row.size());
  }
  return hex(sum.digest());
}

Json sidecar(const RunRecord& record) {
  const AppInfo& info = record.program.info;
  Json larch{{"App", info.name},
             {"Build", build_info()},
             {"CommandLine", record.line.text},
             {"Config", config::to_json(record.program.config)},
             {"Seed", record.context.seed},
             {"Device", describe(record.context.device, record.context.threads)},
             {"Threads", record.context.threads},
             {"Inputs", inputs_of(record)},
             {"Metrics", metrics_of(record.outputs)}};
  if (!record.outputs.notes.empty()) larch["Notes"] = record.outputs.notes;
  larch["Seconds"] = milliseconds_only(record.seconds);
  larch["Status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) larch["Reason"] = record.outputs.status_reason;
  Json generator{{"Name", "Larch " + info.name}, {"Version", version()}};
  return {{"Description", info.summary},
          {"Sources", record.inputs},
          {"GeneratedBy", Json::array({generator})},
          {"Larch", larch}};
}

Json report(const RunRecord& record) {
  Json json{{"app", record.program.info.name}, {"version", version()}};
  json["status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) json["reason"] = record.outputs.status_reason;
  json["seconds"] = milliseconds_only(record.seconds);
  json["device"] = to_string(record.context.device);
  json["threads"] = record.context.threads;
  json["seed"] = record.context.seed;
  json["inputs"] = record.inputs;
  Json& outputs = json["outputs"] = Json::array();
  for (const Outputs::File& file : record.outputs.files) outputs.push_back(file.path);
  json["metrics"] = metrics_of(record.outputs);
  if (!record.outputs.notes.empty()) json["notes"] = record.outputs.notes;
  for (const Outputs::Text& item : record.outputs.reports) json[item.name] = Json::parse(item.text);
  return json;
}

}  // namespace larch::detail
