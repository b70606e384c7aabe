// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/existing.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "larch/app/json_text.h"
#include "larch/app/shared_folder.h"
#include "larch/app/sidecar.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;
using Kind = RecordedOutput::Kind;

constexpr size_t kMostRecordBytes = size_t{256} << 20;
constexpr const char* kReplacing = "replacing";

bool is_there(const RecordedOutput& output) {
  std::error_code error;
  if (output.kind != Kind::kFolder) {
    return fs::symlink_status(output.path, error).type() != fs::file_type::not_found;
  }
  for (fs::directory_iterator entry(output.path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(".larch")) return true;
  }
  return false;
}

std::string record_path(const RecordedOutput& output) {
  if (output.kind == Kind::kReport) return output.path;
  return output.kind == Kind::kFolder ? folder_sidecar_name(output.path)
                                      : sidecar_name(output.path);
}

/// The object with what made an output; none if the file is missing or is no such record.
std::optional<Json> read_record(const std::string& path, const char* key) {
  const auto text = read_untrusted(path, kMostRecordBytes);
  if (!text) return std::nullopt;
  try {
    const Json json = config::parse(*text, path);
    if (!json.is_object() || !json.contains(key) || !json[key].is_object()) return std::nullopt;
    const Json& record = json[key];
    if (!record.contains("Status") || !record["Status"].is_string()) return std::nullopt;
    return record;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::string unknown_maker(const RecordedOutput& output) {
  const std::string record = record_path(output);
  std::error_code ignored;
  std::string why = "'" + record + "' does not tell what made it";
  if (!fs::exists(record, ignored)) why = "there is no '" + record + "' to tell what made it";
  return "output '" + output.path + "' exists, but " + why +
         "; --force computes it again, --skip-existing=name keeps it by its name alone";
}

std::string other_run(const std::string& path, const std::vector<std::string>& found) {
  constexpr size_t kNamed = 4;
  std::string what;
  for (size_t i = 0; i < std::min(found.size(), kNamed); ++i) what += found[i] + "; ";
  if (found.size() > kNamed) what += std::to_string(found.size() - kNamed) + " more; ";
  return "outputs of another run are there ('" + path + "'): " + what + "--force recomputes";
}

/// Whether all files that the record of a folder lists are there.
bool is_complete(const std::string& folder, const Json& record) {
  const auto outputs = record.find("Outputs");
  if (outputs == record.end() || !outputs->is_array()) return false;
  return std::all_of(outputs->begin(), outputs->end(), [&](const Json& name) {
    std::error_code ignored;
    return name.is_string() &&
           fs::is_regular_file(fs::path(folder) / name.get<std::string>(), ignored);
  });
}

void take_outcome(const Json& record, EarlierOutputs& to) {
  to.is_rejected = record["Status"] == "rejected";
  const auto reason = record.find("Reason");
  if (reason != record.end() && reason->is_string()) to.reason = reason->get<std::string>();
  const auto metrics = record.find("Metrics");
  if (metrics == record.end() || !metrics->is_object()) return;
  for (const auto& [name, value] : metrics->items()) {
    if (value.is_number()) to.metrics[name] = value.get<double>();
  }
}

EarlierOutputs by_name(const std::vector<RecordedOutput>& outputs) {
  EarlierOutputs earlier;
  if (!std::all_of(outputs.begin(), outputs.end(), is_there)) return earlier;
  earlier.state = EarlierOutputs::State::kSkip;
  earlier.what = "all outputs exist, by name alone";
  return earlier;
}

}  // namespace

std::vector<RecordedOutput> recorded_outputs(const PlannedOutputs& planned,
                                             const std::string& report) {
  std::vector<RecordedOutput> outputs;
  for (const std::string& path : planned.main) {
    if (is_stream(path)) continue;  // nothing can be there
    outputs.push_back({path, path == report ? Kind::kReport : Kind::kFile});
  }
  for (const std::string& path : planned.folders) outputs.push_back({path, Kind::kFolder});
  return outputs;
}

EarlierOutputs earlier_outputs(const std::vector<RecordedOutput>& outputs,
                               const ResultsBasis& basis, InputDigests& digests) {
  const CommonFlags& flags = basis.line.common;
  EarlierOutputs earlier;
  if (!flags.skip_existing || outputs.empty()) return earlier;
  if (flags.skip_existing == SkipExisting::kName) return by_name(outputs);
  bool all_there = true;
  for (const RecordedOutput& output : outputs) {
    if (!is_there(output)) {
      all_there = false;
      continue;
    }
    const auto record =
        read_record(record_path(output), output.kind == Kind::kReport ? "record" : "Larch");
    const std::string status = record ? (*record)["Status"].get<std::string>() : "";
    if (status == kReplacing) {  // by a run that was killed
      all_there = false;
      continue;
    }
    std::string problem;
    if (status != "done" && status != "rejected") {
      problem = unknown_maker(output);
    } else {
      const std::vector<std::string> found = differences(*record, basis, digests);
      if (!found.empty()) problem = other_run(output.path, found);
    }
    if (!problem.empty()) {
      if (flags.force) return {};
      earlier = {};
      earlier.state = EarlierOutputs::State::kOther;
      earlier.what = problem;
      return earlier;
    }
    if (output.kind == Kind::kFolder && !is_complete(output.path, *record)) all_there = false;
    if (output.kind != Kind::kReport || outputs.size() == 1) take_outcome(*record, earlier);
  }
  if (!all_there) return {};
  earlier.state = EarlierOutputs::State::kSkip;
  earlier.what = "all outputs are there, from the same inputs and configuration";
  return earlier;
}

std::string sidecar_of_replaced(const std::string& app) {
  return json_text(Json{{"Larch", {{"App", app}, {"Status", kReplacing}}}}, 2) + "\n";
}

bool is_sidecar(const std::string& path) {
  return read_record(path, "Larch").has_value();
}

}  // namespace larch::detail
