// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/existing.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "larch/app/records/output_record.h"
#include "larch/app/records/shared_folder.h"
#include "larch/app/records/sidecar.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;
using Kind = RecordedOutput::Kind;

constexpr const char* kReplacing = "replacing";

/// Whether the name is taken, if only by a link that leads nowhere.
bool is_taken(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_there(const RecordedOutput& output) {
  if (output.kind != Kind::kFolder) return path_exists(output.path);
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
  const auto text = read_untrusted(path, kMostSidecarBytes);
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

std::string unknown_maker(const RecordedOutput& output, bool is_by_name) {
  const std::string record = record_path(output);
  std::error_code ignored;
  std::string why = "'" + record + "' does not tell what made it";
  if (!fs::exists(record, ignored)) why = "there is no '" + record + "' to tell what made it";
  const char* keep = is_by_name ? "" : ", --skip-existing=name keeps it by its name alone";
  return "output '" + output.path + "' exists, but " + why + "; --force computes it again" + keep;
}

std::string other_run(const std::string& path, const Differences& all) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> found = all.settings;
  found.insert(found.end(), all.subject.begin(), all.subject.end());
  std::string what;
  for (size_t i = 0; i < std::min(found.size(), kNamed); ++i) what += found[i] + "; ";
  if (found.size() > kNamed) what += std::to_string(found.size() - kNamed) + " more; ";
  return "outputs of another run are there ('" + path + "'): " + what + "--force recomputes";
}

std::string not_written(const std::string& path, const std::string& why) {
  return "output '" + path + "' is not what its run wrote: it " + why +
         "; move it away, or --force replaces it";
}

/// What is under the name of an output file and cannot be one; empty if it can, or if nothing is.
std::string why_no_output(const std::string& path) {
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(path, ignored);
  if (!path_exists(path) || (is_file && !fs::is_empty(path, ignored))) return "";
  return "output '" + path + "' is " + (is_file ? "empty" : "no regular file") +
         "; move it away, or --force replaces it";
}

/// A run's outputs of one record, as they are found.
struct Found {
  std::string problem{};  ///< with one that is there
  bool is_whole = true;   ///< none is missing
};

/// All files that the record of a folder names.
Found look_at_folder(const std::string& folder, const Json& record) {
  const std::vector<NamedFile> files = named_files(record, folder);
  if (!record.contains("Outputs") || files.size() != record["Outputs"].size()) return {"", false};
  Found found;
  for (const NamedFile& file : files) {
    const std::string why = path_exists(file.path) ? why_not_as_written(file) : "";
    if (!why.empty()) return {not_written(file.path, why)};
    if (!path_exists(file.path)) found.is_whole = false;
  }
  return found;
}

/// An output file, and those of its companions that its record names. Those of other runs, and what
/// a run removes at its end, are not named.
Found look_at_file(const RecordedOutput& output, const std::vector<std::string>& companions,
                   const Json& record) {
  const std::vector<NamedFile> files = named_files(record, folder_of(output.path));
  const NamedFile* own = find_named(files, output.path);
  if (own == nullptr) return {not_written(output.path, "is not named by its sidecar")};
  const std::string why = why_not_as_written(*own);
  if (!why.empty()) return {not_written(output.path, why)};
  const Json role = own->entry.value("Role", Json(""));
  if (role != output.role) {
    const std::string flag = role.is_string() ? "--" + role.get<std::string>() : "unknown";
    return {not_written(output.path, "was its " + flag + ", not --" + output.role)};
  }
  Found found;
  for (const std::string& path : companions) {
    const NamedFile* companion = find_named(files, path);
    if (companion == nullptr) continue;
    const std::string wrong = is_taken(path) ? why_not_as_written(*companion) : "";
    if (!wrong.empty()) return {not_written(path, wrong)};
    if (!is_taken(path)) found.is_whole = false;
  }
  return found;
}

/// What would be replaced beside outputs although no sidecar tells that Larch wrote it for them: a
/// sidecar of another maker or of another output, or a companion. Empty if nothing would.
std::string foreign_file(const std::vector<RecordedOutput>& outputs,
                         const std::vector<std::string>& companions, bool no_sidecar) {
  std::vector<NamedFile> known;
  for (const RecordedOutput& output : outputs) {
    if (output.kind != Kind::kFile) continue;
    std::string path = sidecar_name(output.path);
    const auto record = read_record(path, "Larch");
    if (record) {
      const std::vector<NamedFile> files = named_files(*record, folder_of(output.path));
      known.insert(known.end(), files.begin(), files.end());
    }
    const bool is_ours = record && (is_there(output) || is_orphan(path, output.path));
    if (!no_sidecar && is_taken(path) && !is_ours) return path;
  }
  for (const std::string& path : companions) {
    if (is_taken(path) && find_named(known, path) == nullptr) return path;
  }
  return "";
}

/// `may_resume`: it may be what an interrupted run of a program with --resume goes on from.
std::string in_the_way(const std::string& path, bool may_resume) {
  const char* hint = may_resume
                         ? "if an interrupted run left it, --resume --skip-existing goes on from "
                           "it; else move it away, or --force replaces it"
                         : "move it away, or --force replaces it";
  return "'" + path +
         "' lies beside an output that is not there, and no sidecar tells that it belongs to it; " +
         hint;
}

bool has_flag(const CommandLine& line, const std::string& flag) {
  return std::any_of(line.app.begin(), line.app.end(),
                     [&](const config::Leaf& leaf) { return leaf.flag == flag; });
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

/// By what the sidecars tell. Nothing is said of files beside what is missing.
EarlierOutputs by_record(const std::vector<RecordedOutput>& outputs,
                         const std::vector<std::string>& companions, const ResultsBasis& basis,
                         InputDigests& digests) {
  EarlierOutputs earlier;
  bool all_there = true;
  std::string other;  // the first output of a run with other settings
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
      problem = unknown_maker(output, basis.line.common.skip_existing == SkipExisting::kName);
    } else {
      const Differences found = differences(*record, basis, digests);
      if (found.only_settings()) {
        if (other.empty()) other = other_run(output.path, found);
      } else if (!found.none()) {
        problem = other_run(output.path, found);
      }
    }
    if (!problem.empty()) {
      return {EarlierOutputs::State::kOther, other.empty() ? problem : other};
    }
    Found found;
    if (output.kind == Kind::kFolder) found = look_at_folder(output.path, *record);
    if (output.kind == Kind::kFile) found = look_at_file(output, companions, *record);
    if (!found.problem.empty()) {
      return {EarlierOutputs::State::kOther, other.empty() ? found.problem : other};
    }
    if (!found.is_whole) all_there = false;
    if (output.kind != Kind::kReport || outputs.size() == 1) take_outcome(*record, earlier);
  }
  if (!other.empty()) {
    earlier.state = EarlierOutputs::State::kOther;
    earlier.what = other;
    earlier.has_other_settings = all_there;
    return earlier;
  }
  if (!all_there) return {};
  earlier.state = EarlierOutputs::State::kSkip;
  earlier.is_confirmed = true;
  earlier.what = "all outputs are there, from the same inputs and configuration";
  return earlier;
}

/// By their names, if all are there. What is there is computed again with a part that is missing,
/// and replaced, only if the sidecars tell that it is the same run's.
EarlierOutputs by_name(const std::vector<RecordedOutput>& outputs, const ResultsBasis& basis,
                       InputDigests& digests) {
  std::string missing;
  for (const RecordedOutput& output : outputs) {
    if (!is_there(output)) missing = output.path;
    const std::string why = output.kind == Kind::kFolder ? "" : why_no_output(output.path);
    if (!why.empty()) return {EarlierOutputs::State::kOther, why};
  }
  if (missing.empty()) {
    return {EarlierOutputs::State::kSkip, "all outputs exist, by name alone"};
  }
  EarlierOutputs earlier = by_record(outputs, {}, basis, digests);
  if (earlier.state == EarlierOutputs::State::kOther) {
    earlier.what =
        "'" + missing + "' is missing, and what is there is not replaced unasked: " + earlier.what;
  }
  return earlier;
}

}  // namespace

std::string role_of_output(const std::vector<GivenPath>& paths, const std::string& path) {
  const auto given = std::find_if(paths.begin(), paths.end(), [&](const GivenPath& one) {
    return is_output(one.role) && one.path == path;
  });
  return given == paths.end() ? "" : given->flag.substr(2);
}

std::vector<RecordedOutput> recorded_outputs(const PlannedOutputs& planned,
                                             const std::vector<GivenPath>& paths,
                                             const std::string& report) {
  std::vector<RecordedOutput> outputs;
  for (const std::string& path : planned.main) {
    if (is_stream(path)) continue;  // nothing can be there
    outputs.push_back(
        {path, path == report ? Kind::kReport : Kind::kFile, role_of_output(paths, path)});
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
                               ? by_name(outputs, basis, digests)
                               : by_record(outputs, companions, basis, digests);
  if (earlier.state == EarlierOutputs::State::kSkip) return earlier;
  if (flags.force) return {};
  if (earlier.state == EarlierOutputs::State::kOther) return earlier;
  const std::string foreign = foreign_file(outputs, companions, flags.no_sidecar);
  if (foreign.empty()) return earlier;
  const bool is_companion =
      std::find(companions.begin(), companions.end(), foreign) != companions.end();
  const bool may_resume = is_companion && has_flag(basis.line, "--resume");
  return {EarlierOutputs::State::kOther, in_the_way(foreign, may_resume)};
}

std::string sidecar_of_replaced(const std::string& app, const std::vector<std::string>& names) {
  Json outputs = Json::array();
  for (const std::string& name : names) outputs.push_back(output_record(name, "", Json()));
  const Json larch{{"App", app}, {"Status", kReplacing}, {"Outputs", outputs}};
  return json_text(Json{{"Larch", larch}}, 2) + "\n";
}

bool is_sidecar(const std::string& path) {
  return read_record(path, "Larch").has_value();
}

bool is_sidecar_of(const std::string& sidecar, const std::string& output) {
  const auto record = read_record(sidecar, "Larch");
  return record && find_named(named_files(*record, folder_of(sidecar)), output) != nullptr;
}

bool is_orphan(const std::string& sidecar, const std::string& output) {
  return !path_exists(output) && is_sidecar_of(sidecar, output);
}

std::vector<std::string> orphans_of(const std::vector<std::string>& outputs) {
  std::vector<std::string> orphans;
  for (const std::string& output : outputs) {
    if (is_orphan(sidecar_name(output), output)) orphans.push_back(sidecar_name(output));
  }
  return orphans;
}

}  // namespace larch::detail
