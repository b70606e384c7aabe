// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/folder_record.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "larch/app/shared_folder.h"
#include "larch/app/sidecar.h"
#include "larch/core/error.h"
#include "larch/core/temporaries.h"

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

void append(const std::vector<Json>& from, std::vector<Json>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

FolderRecord folder_record(const std::string& folder, Json sidecar, bool has_lock,
                           const std::function<void(const std::string&)>& warn) {
  if (!has_lock) {
    return {parts_folder(folder) + "/" + kPrefix + random_hex() + kEnding, std::move(sidecar)};
  }
  FolderRecord record{folder_sidecar_name(folder), std::move(sidecar)};
  std::vector<Json> earlier;
  for (const std::string& part : parts_in(folder, kPrefix, kEnding)) {
    const auto runs = runs_of(part);
    if (!runs) continue;
    append(*runs, earlier);
    record.taken_in.push_back(part);
  }
  std::error_code ignored;
  if (fs::exists(record.path, ignored)) {
    if (const auto runs = runs_of(record.path)) {
      append(*runs, earlier);
    } else if (fs::is_regular_file(record.path, ignored)) {
      const std::string kept = keep_aside(record.path);
      if (!kept.empty()) {
        warn("'" + record.path + "' is no record of runs that can be understood; it is kept as '" +
             kept + "'");
      }
    }
  }
  Json list = Json::array();
  size_t bytes = 0;
  for (const Json& run : earlier) {
    bytes += run.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (list.size() == kMostEarlierRuns || bytes > kMostEarlierBytes) break;
    list.push_back(run);
  }
  if (!list.empty()) record.json["Larch"][kEarlier] = list;
  return record;
}

}  // namespace larch::detail
