// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/case_record.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "larch/app/build_info.h"
#include "larch/config/json_text.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

Json metrics_of(const Outputs& outputs) {
  Json metrics = Json::object();
  for (const Outputs::Text& item : outputs.metrics) metrics[item.name] = Json::parse(item.text);
  return metrics;
}

/// Returns the paths of all inputs, each once.
Json sources_of(const ResultsBasis& basis) {
  std::set<std::string> known;
  Json sources = Json::array();
  for (const RunInput& input : basis.inputs) {
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
    for (const Outputs::Report& dicom : record.outputs.dicoms) {
      if (dicom.name == input["Path"]) input["DICOM"] = *dicom.value;
    }
  }
  return basis;
}

double milliseconds_only(double seconds) {
  return std::round(seconds * 1000) / 1000;
}

/// Returns the seconds of each step; of those with one name together.
Json steps_json(const StepSeconds& steps) {
  Json json = Json::object();
  for (const auto& [name, seconds] : steps) {
    json[name] = milliseconds_only(json.value(name, 0.0) + seconds);
  }
  return json;
}

/// Returns the stamp of a file without the time of change, which renaming sets; null for what is no
/// regular file.
Json output_stamp(const std::string& path) {
  if (!is_file(path)) return nullptr;
  Json stamp = input_stamp(path);
  if (stamp.is_object()) stamp.erase("Changed");
  return stamp;
}

}  // namespace

std::string record_name(const std::string& output) {
  return output + ".json";
}

std::string folder_record_name(const std::string& folder) {
  return (fs::path(folder) / "larch.json").string();
}

std::string page_name(const std::string& folder) {
  return (fs::path(folder) / "index.html").string();
}

std::string case_record_name(const std::string& folder, const std::string& id) {
  return (fs::path(folder) / (id + ".larch.json")).string();
}

std::string failed_record_name(const std::string& folder, const std::string& id) {
  return (fs::path(folder) / (id + ".failed.larch.json")).string();
}

std::optional<Json> parse_record(const std::string& text, const std::string& path) {
  try {
    Json json = config::parse(text, path);
    if (!json.is_object() || !json.contains("Larch") || !json["Larch"].is_object()) return {};
    Json larch = std::move(json["Larch"]);
    if (!larch.contains("Status") || !larch["Status"].is_string()) return std::nullopt;
    return larch;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::optional<Json> read_record(const std::string& path) {
  const auto text = read_untrusted(path, kMaximumRecordBytes);
  return text ? parse_record(*text, path) : std::nullopt;
}

Json record_json(const RunRecord& record, const Json& entries) {
  const AppInfo& info = record.basis.program.info;
  Json larch{{"App", info.name}, {"Build", build_info()}, {"CommandLine", record.basis.line.text}};
  larch.update(basis_of(record));
  larch["Device"] = describe(record.context.device, record.context.threads);
  larch["Threads"] = record.context.threads;
  larch["Metrics"] = metrics_of(record.outputs);
  if (!record.outputs.structures.empty()) larch["Structures"] = structures_json(record.outputs);
  if (!record.outputs.notes.empty()) larch["Notes"] = record.outputs.notes;
  larch["Seconds"] = milliseconds_only(seconds_since(record.began));
  larch["Steps"] = steps_json(record.outputs.steps);
  larch["Steps"]["writing"] = milliseconds_only(seconds_since(record.computed));
  larch["Ended"] = utc_now();
  larch["Status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) larch["Reason"] = record.outputs.status_reason;
  if (record.cells != nullptr) larch["Row"] = row_json(*record.cells, larch["Ended"]);
  larch["Outputs"] = entries;
  const Json generator{{"Name", "Larch " + info.name}, {"Version", version()}};
  return {{"Description", info.summary},
          {"Sources", sources_of(record.basis)},
          {"GeneratedBy", Json::array({generator})},
          {"Larch", larch}};
}

Json structures_json(const Outputs& outputs) {
  Json structures = Json::array();
  for (const ResultStructure& one : outputs.structures) {
    const auto colour = formatted("#%02x%02x%02x", one.rgb[0], one.rgb[1], one.rgb[2]);
    Json& entry = structures.emplace_back(Json{{"Name", one.name}, {"Color", colour}});
    if (one.volume_ml) entry["VolumeMl"] = *one.volume_ml;
    if (one.dice) entry["Dice"] = *one.dice;
    if (!one.status.empty()) entry["Status"] = one.status;
  }
  return structures;
}

Json row_json(const CaseCells& cells, const std::string& ended) {
  Json row = Json::object();
  for (const auto& [column, text] : cells) row[column] = text;
  row["ended"] = ended;
  return row;
}

Json entry_of(const std::string& temporary, const std::string& name, const std::string& role) {
  Json entry{{"Name", name}};
  if (!role.empty()) entry["Role"] = role;
  const Json stamp = output_stamp(temporary);
  if (stamp.is_null()) throw OutputError("'" + temporary + "' is gone; it has just been written");
  entry.update(stamp);
  try {
    entry["SHA256"] = sha256_of_file(temporary);
  } catch (const InputError& error) {
    throw OutputError("what was written cannot be read again: " + std::string(error.what()));
  }
  return entry;
}

std::string name_in_record(const std::string& path, const std::string& record) {
  const fs::path folder = fs::path(folder_of(record)).lexically_normal();
  const fs::path name = fs::path(path).lexically_normal().lexically_relative(folder);
  if (!name.empty() && *name.begin() != "..") return name.string();
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::vector<NamedFile> named_files(const Json& larch, const std::string& record) {
  std::vector<NamedFile> files;
  const auto outputs = larch.find("Outputs");
  if (outputs == larch.end() || !outputs->is_array()) return files;
  for (const Json& entry : *outputs) {
    const std::string name = text_at(entry, "Name");
    if (name.empty()) continue;
    const fs::path path = (fs::path(folder_of(record)) / name).lexically_normal();
    files.push_back({path.string(), text_at(entry, "Role"), entry});
  }
  return files;
}

std::string why_not_as_written(const NamedFile& file) {
  const Json now = output_stamp(file.path);
  if (now.is_null()) return "is no regular file";
  const std::string digest = text_at(file.entry, "SHA256");
  const Json bytes = file.entry.value("Bytes", Json());
  if (digest.empty() || !bytes.is_number_unsigned()) {
    return "cannot be compared: its record does not tell its content";
  }
  if (bytes != now["Bytes"]) {
    return "has " + now["Bytes"].dump() + " bytes, and " + bytes.dump() + " were written";
  }
  if (file.entry.value("Modified", Json()) == now["Modified"] &&
      file.entry.value("Inode", Json()) == now["Inode"]) {
    return "";
  }
  try {
    return sha256_of_file(file.path) == digest ? "" : "has other content than what was written";
  } catch (const InputError& error) {
    return "cannot be compared: " + std::string(error.what());
  }
}

Json report(const RunRecord& record) {
  Json json{{"app", record.basis.program.info.name}, {"version", version()}};
  json["status"] = record.outputs.status_word;
  if (!record.outputs.status_reason.empty()) json["reason"] = record.outputs.status_reason;
  json["seconds"] = milliseconds_only(seconds_since(record.began));
  json["device"] = to_string(record.context.device);
  json["threads"] = record.context.threads;
  json["seed"] = record.context.seed;
  json["inputs"] = sources_of(record.basis);
  add_results(record.outputs, record.basis.line.common.report, json);
  json["steps"]["writing"] = milliseconds_only(seconds_since(record.computed));
  return json;
}

Json failure_report(const ResultsBasis& basis, const Failure& failure, double seconds) {
  return {{"app", basis.program.info.name},
          {"version", version()},
          {"status", kFailed},
          {"reason", in_one_line(failure)},
          {"exit_code", static_cast<int>(failure.code)},
          {"seconds", milliseconds_only(seconds)},
          {"inputs", sources_of(basis)}};
}

void add_results(const Outputs& outputs, const std::string& report_name, Json& json) {
  Json& names = json["outputs"] = Json::array();
  for (const Outputs::File& file : outputs.files) {
    if (file.path != report_name) names.push_back(file.path);
  }
  json["metrics"] = metrics_of(outputs);
  json["steps"] = steps_json(outputs.steps);
  if (!outputs.notes.empty()) json["notes"] = outputs.notes;
  for (const Outputs::Report& item : outputs.reports) json[item.name] = *item.value;
}

std::optional<std::string> report_status(const std::string& path, const std::string& app) {
  const auto text = read_untrusted(path, kMaximumRecordBytes);
  if (!text) return std::nullopt;
  try {
    const Json json = config::parse(*text, path);
    if (!json.is_object() || text_at(json, "app") != app) return std::nullopt;
    return text_at(json, "status");
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

}  // namespace larch::detail
