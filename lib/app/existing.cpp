// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/existing.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "larch/app/json_text.h"
#include "larch/app/shared_folder.h"
#include "larch/app/sidecar.h"
#include "larch/core/atomic_file.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;
using Kind = RecordedOutput::Kind;

constexpr size_t kMostRecordBytes = size_t{256} << 20;
constexpr const char* kReplacing = "replacing";

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_there(const RecordedOutput& output) {
  if (output.kind != Kind::kFolder) return is_there(output.path);
  std::error_code error;
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

/// The files that a record in `folder` names, with the folder; what is no name is left out.
std::vector<std::string> files_named(const Json& record, const std::string& folder) {
  std::vector<std::string> files;
  const auto outputs = record.find("Outputs");
  if (outputs == record.end() || !outputs->is_array()) return files;
  for (const Json& name : *outputs) {
    if (name.is_string()) files.push_back((fs::path(folder) / name.get<std::string>()).string());
  }
  return files;
}

bool is_among(const std::string& path, const std::vector<std::string>& files) {
  const fs::path normal = fs::path(path).lexically_normal();
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return fs::path(file).lexically_normal() == normal;
  });
}

/// Whether all files that the record of a folder names are there.
bool is_complete_folder(const std::string& folder, const Json& record) {
  if (!record.contains("Outputs") || !record["Outputs"].is_array()) return false;
  const std::vector<std::string> files = files_named(record, folder);
  return files.size() == record["Outputs"].size() &&
         std::all_of(files.begin(), files.end(), [](const std::string& file) {
           std::error_code ignored;
           return fs::is_regular_file(file, ignored);
         });
}

/// Whether the companions that the record of an output names are there. Those of other runs, and
/// what a run removes at its end, are not named.
bool has_companions(const std::string& output, const std::vector<std::string>& companions,
                    const Json& record) {
  const std::vector<std::string> files = files_named(record, folder_of(output));
  return std::none_of(companions.begin(), companions.end(), [&](const std::string& path) {
    return is_among(path, files) && !is_there(path);
  });
}

/// What would be replaced beside outputs although no sidecar tells that Larch wrote it for them: a
/// sidecar of another maker or of another output, or a companion. Empty if nothing would.
std::string foreign_file(const std::vector<RecordedOutput>& outputs,
                         const std::vector<std::string>& companions, bool no_sidecar) {
  std::vector<std::string> known;
  for (const RecordedOutput& output : outputs) {
    if (output.kind != Kind::kFile) continue;
    std::string path = sidecar_name(output.path);
    const auto record = read_record(path, "Larch");
    if (record) {
      const std::vector<std::string> files = files_named(*record, folder_of(output.path));
      known.insert(known.end(), files.begin(), files.end());
    }
    const bool is_ours = record && (is_there(output) || is_orphan(path, output.path));
    if (!no_sidecar && is_there(path) && !is_ours) return path;
  }
  for (const std::string& path : companions) {
    if (is_there(path) && !is_among(path, known)) return path;
  }
  return "";
}

std::string in_the_way(const std::string& path) {
  return "'" + path +
         "' lies beside an output that is not there, and no sidecar tells that it belongs to it; "
         "move it away, or --force replaces it";
}

void take_outcome(const Json& record, EarlierOutputs& to) {
  to.is_rejected = record["Status"] == "rejected";
  const auto reason = record.find("Reason");
  if (reason != record.end() && reason->is_string()) to.reason = reason->get<std::string>();
  const auto seconds = record.find("Seconds");
  if (seconds != record.end() && seconds->is_number()) to.seconds = seconds->get<double>();
  const auto metrics = record.find("Metrics");
  if (metrics == record.end() || !metrics->is_object()) return;
  for (const auto& [name, value] : metrics->items()) {
    if (value.is_number()) to.metrics[name] = value.get<double>();
  }
}

EarlierOutputs by_name(const std::vector<RecordedOutput>& outputs) {
  EarlierOutputs earlier;
  const bool all_there = std::all_of(outputs.begin(), outputs.end(),
                                     [](const RecordedOutput& one) { return is_there(one); });
  if (!all_there) return earlier;
  earlier.state = EarlierOutputs::State::kSkip;
  earlier.what = "all outputs exist, by name alone";
  return earlier;
}

/// By what the sidecars tell. Nothing is said of files beside what is missing.
EarlierOutputs by_record(const std::vector<RecordedOutput>& outputs,
                         const std::vector<std::string>& companions, const ResultsBasis& basis,
                         InputDigests& digests) {
  EarlierOutputs earlier;
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
    if (!problem.empty()) return {EarlierOutputs::State::kOther, problem};
    const bool is_whole = output.kind == Kind::kFolder
                              ? is_complete_folder(output.path, *record)
                              : has_companions(output.path, companions, *record);
    if (!is_whole) all_there = false;
    if (output.kind != Kind::kReport || outputs.size() == 1) take_outcome(*record, earlier);
  }
  if (!all_there) return {};
  earlier.state = EarlierOutputs::State::kSkip;
  earlier.is_confirmed = true;
  earlier.what = "all outputs are there, from the same inputs and configuration";
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
                               const std::vector<std::string>& companions,
                               const ResultsBasis& basis, InputDigests& digests) {
  const CommonFlags& flags = basis.line.common;
  if (!flags.skip_existing || outputs.empty()) return {};
  EarlierOutputs earlier = flags.skip_existing == SkipExisting::kName
                               ? by_name(outputs)
                               : by_record(outputs, companions, basis, digests);
  if (earlier.state == EarlierOutputs::State::kSkip) return earlier;
  if (flags.force) return {};
  if (earlier.state == EarlierOutputs::State::kOther) return earlier;
  const std::string foreign = foreign_file(outputs, companions, flags.no_sidecar);
  if (!foreign.empty()) return {EarlierOutputs::State::kOther, in_the_way(foreign)};
  return earlier;
}

std::string sidecar_of_replaced(const std::string& app, const std::vector<std::string>& names) {
  const Json larch{{"App", app}, {"Status", kReplacing}, {"Outputs", names}};
  return json_text(Json{{"Larch", larch}}, 2) + "\n";
}

bool is_sidecar(const std::string& path) {
  return read_record(path, "Larch").has_value();
}

bool is_orphan(const std::string& sidecar, const std::string& output) {
  if (is_there(output)) return false;
  const auto record = read_record(sidecar, "Larch");
  return record && is_among(output, files_named(*record, folder_of(sidecar)));
}

std::vector<std::string> orphans_of(const std::vector<std::string>& outputs) {
  std::vector<std::string> orphans;
  for (const std::string& output : outputs) {
    if (is_orphan(sidecar_name(output), output)) orphans.push_back(sidecar_name(output));
  }
  return orphans;
}

}  // namespace larch::detail
