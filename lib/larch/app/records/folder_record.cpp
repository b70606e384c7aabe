// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/folder_record.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "larch/app/outputs/file_set.h"
#include "larch/app/records/sidecar.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/files/temporaries.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

constexpr const char* kPrefix = "run-";
constexpr const char* kEnding = ".json";
constexpr const char* kEarlier = "EarlierRuns";
constexpr size_t kMostFileBytes = size_t{64} << 20;
/// Objects and lists in each other in one run. Among the earlier runs it stands some levels deeper,
/// where it must be within what config::parse takes.
constexpr int kDeepestRun = 60;

bool is_deeper(const Json& json, int most) {
  if (!json.is_structured()) return false;
  if (most == 0) return true;
  return std::any_of(json.begin(), json.end(),
                     [&](const Json& one) { return is_deeper(one, most - 1); });
}

/// The runs that a record tells of, its own first. None if it cannot be understood.
std::optional<std::vector<Json>> runs_of(const std::string& path) {
  const auto text = read_untrusted(path, kMostFileBytes);
  if (!text) return std::nullopt;
  try {
    Json json = config::parse(*text, path);
    if (!json.is_object() || !json.contains("Larch") || !json["Larch"].is_object()) {
      return std::nullopt;
    }
    Json& own = json["Larch"];
    const Json earlier = own.value(kEarlier, Json::array());
    own.erase(kEarlier);
    std::vector<Json> runs{own};
    if (!earlier.is_array()) return std::nullopt;
    for (const Json& run : earlier) {
      if (!run.is_object()) return std::nullopt;
      runs.push_back(run);
    }
    const bool is_deep = std::any_of(runs.begin(), runs.end(),
                                     [](const Json& run) { return is_deeper(run, kDeepestRun); });
    if (is_deep) return std::nullopt;
    return runs;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::string key_of(const Json& run) {
  const auto name = run.find("Run");
  return name != run.end() && name->is_string() ? name->get<std::string>() : json_text(run);
}

/// The runs that a folder tells of.
struct KnownRuns {
  std::vector<Json> runs{};          ///< each once, those of the parts first
  std::vector<std::string> parts{};  ///< that were understood
};

void keep_with_warning(const std::string& path, const Context& context) {
  const std::string kept = keep_aside(path);
  if (kept.empty()) {
    throw OutputError("'" + path +
                      "' is no record of runs that can be understood, and cannot be put aside; "
                      "move it away");
  }
  context.warn("'" + path + "' is no record of runs that can be understood; it is kept as '" +
               kept + "'");
}

KnownRuns known_runs(const std::string& folder, bool has_lock, const Context& context) {
  KnownRuns known;
  std::set<std::string> keys;
  const auto add = [&](const std::vector<Json>& runs) {
    for (const Json& run : runs) {
      if (keys.insert(key_of(run)).second) known.runs.push_back(run);
    }
  };
  for (const std::string& part : parts_in(folder, kPrefix, kEnding)) {
    if (const auto runs = runs_of(part)) {
      add(*runs);
      known.parts.push_back(part);
    } else if (has_lock) {
      keep_with_warning(part, context);
    }
  }
  const std::string path = folder_sidecar_name(folder);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return known;
  if (const auto runs = runs_of(path)) {
    add(*runs);
  } else if (fs::is_regular_file(path, ignored)) {
    keep_with_warning(path, context);
  }
  return known;
}

void write_record(const std::string& path, const Json& json, const Context& context) {
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  FileSet files(/*replace=*/true, to_the_end);
  files.write(path, text_writer(json_text(json, 2) + "\n"));
  files.commit();
}

/// Writes larch.json with this run first.
void write_union(const std::string& folder, Json sidecar, const KnownRuns& known,
                 const Context& context) {
  Json& larch = sidecar["Larch"];
  const std::string own = key_of(larch);
  Json list = Json::array();
  size_t bytes = 0;
  for (const Json& run : known.runs) {
    if (key_of(run) == own) continue;
    bytes += json_text(run).size();
    if (list.size() == kMostEarlierRuns || bytes > kMostEarlierBytes) break;
    list.push_back(run);
  }
  if (!list.empty()) larch[kEarlier] = list;
  write_record(folder_sidecar_name(folder), sidecar, context);
}

/// Whether larch.json tells of all runs of the parts.
bool is_united(const std::string& folder) {
  const auto united = runs_of(folder_sidecar_name(folder));
  if (!united) return false;
  std::set<std::string> keys;
  for (const Json& run : *united) keys.insert(key_of(run));
  for (const std::string& part : parts_in(folder, kPrefix, kEnding)) {
    const auto runs = runs_of(part).value_or(std::vector<Json>{});
    const bool all = std::all_of(runs.begin(), runs.end(),
                                 [&](const Json& run) { return keys.contains(key_of(run)); });
    if (!all) return false;
  }
  return true;
}

}  // namespace

void write_folder_record(const std::string& folder, const Json& sidecar, const Context& context,
                         double wait_seconds) {
  constexpr int kTries = 5;
  Json own = sidecar;
  const std::string name = random_hex();
  own["Larch"]["Run"] = name;
  const FolderLock lock(folder, wait_seconds);
  if (lock.state() == FolderLock::State::kTaken) {
    const KnownRuns known = known_runs(folder, /*has_lock=*/true, context);
    write_union(folder, own, known, context);
    std::error_code ignored;
    for (const std::string& part : known.parts) fs::remove(part, ignored);
    return;
  }
  const std::string part = parts_folder(folder) + "/" + kPrefix + name + kEnding;
  write_record(part, own, context);
  if (lock.state() == FolderLock::State::kBusy) {
    context.warn("another run holds the lock of '" + folder +
                 "' and does not let it go: the record of this run is '" + part +
                 "', and the next run into the folder takes it over");
    return;
  }
  // Of runs that write at the same time the one that writes last finds the parts of the others,
  // since each makes its part first. Too many runs for the list are never all in it.
  for (int i = 0; i < kTries; ++i) {
    write_union(folder, own, known_runs(folder, /*has_lock=*/false, context), context);
    if (is_united(folder)) return;
  }
}

}  // namespace larch::detail
