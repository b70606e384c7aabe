// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/sidecar.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "larch/app/build_info.h"
#include "larch/app/records/output_record.h"
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

/// The paths of all inputs, each once.
Json sources_of(const RunRecord& record) {
  std::set<std::string> known;
  Json sources = Json::array();
  for (const RunInput& input : record.basis.inputs) {
    if (input.text.empty() && known.insert(input.path).second) sources.push_back(input.path);
  }
  return sources;
}

/// The basis of the results, with what the run knows of its inputs beside their content.
Json basis_of(const RunRecord& record) {
  Json basis = results_record(record.basis, record.digests);
  for (Json& input : basis["Inputs"]) {
    if (!input.contains("Path")) continue;
    if (input.contains("ChangedDuringRun")) {
      record.context.warn("'" + input["Path"].get<std::string>() +
                          "' changed during the run; what was read is not known");
    }
    for (const Outputs::Text& grid : record.outputs.grids) {
      if (grid.name == input["Path"]) input["Grid"] = grid.text;
    }
  }
  return basis;
}

Json output_of(const RunRecord& record, const std::string& path, const std::string& name,
               const std::string& role) {
  const auto content = record.written.find(path);
  return output_record(name, role, content == record.written.end() ? Json() : content->second);
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
  const AppInfo& info = record.basis.program.info;
  const Json basis = basis_of(record);
  Json larch{{"App", info.name},
             {"Build", build_info()},
             {"CommandLine", record.basis.line.text},
             {"ResultsVersion", basis["ResultsVersion"]},
             {"Options", basis["Options"]},
             {"Config", basis["Config"]},
             {"Seed", basis["Seed"]},
             {"Device", describe(record.context.device, record.context.threads)},
             {"Threads", record.context.threads},
             {"Inputs", basis["Inputs"]},
             {"Metrics", metrics_of(record.outputs)}};
  if (!record.outputs.notes.empty()) larch["Notes"] = record.outputs.notes;
  larch["Seconds"] = milliseconds_only(record.seconds);
  larch["Status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) larch["Reason"] = record.outputs.status_reason;
  Json generator{{"Name", "Larch " + info.name}, {"Version", version()}};
  return {{"Description", info.summary},
          {"Sources", sources_of(record)},
          {"GeneratedBy", Json::array({generator})},
          {"Larch", larch}};
}

Json outputs_of(const RunRecord& record, const Outputs::File& file, const std::string& role,
                const std::vector<std::string>& companions) {
  const auto name_of = [](const std::string& path) { return fs::path(path).filename().string(); };
  Json outputs = Json::array({output_of(record, file.path, name_of(file.path), role)});
  for (const std::string& path : companions) {
    outputs.push_back(output_of(record, path, name_of(path), ""));
  }
  return outputs;
}

Json folder_sidecar(const RunRecord& record, const std::string& folder) {
  Json json = sidecar(record);
  Json outputs = Json::array();
  for (const Outputs::File& file : record.outputs.files) {
    const fs::path name = fs::path(file.path).lexically_normal().lexically_relative(
        fs::path(folder).lexically_normal());
    if (!name.empty() && *name.begin() != "..") {
      outputs.push_back(output_of(record, file.path, name.string(), ""));
    }
  }
  json["Larch"]["Outputs"] = outputs;
  return json;
}

Json report(const RunRecord& record) {
  Json json{{"app", record.basis.program.info.name}, {"version", version()}};
  json["status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) json["reason"] = record.outputs.status_reason;
  json["seconds"] = milliseconds_only(record.seconds);
  json["device"] = to_string(record.context.device);
  json["threads"] = record.context.threads;
  json["seed"] = record.context.seed;
  json["inputs"] = sources_of(record);
  Json& outputs = json["outputs"] = Json::array();
  for (const Outputs::File& file : record.outputs.files) outputs.push_back(file.path);
  json["metrics"] = metrics_of(record.outputs);
  if (!record.outputs.notes.empty()) json["notes"] = record.outputs.notes;
  for (const Outputs::Text& item : record.outputs.reports) json[item.name] = Json::parse(item.text);
  if (!record.basis.line.common.no_sidecar) {
    json["record"] = basis_of(record);
    json["record"]["Status"] = record.outputs.status_word;
    if (!record.outputs.status_reason.empty()) {
      json["record"]["Reason"] = record.outputs.status_reason;
    }
  }
  return json;
}

}  // namespace larch::detail
