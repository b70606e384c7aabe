// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/results_record.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "larch/config/json_text.h"
#include "larch/config/text.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::string digest_of(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  return sha256_of(config::join(lines, ""));
}

Json folder_stamp(const std::string& path) {
  std::vector<std::string> lines, changes;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (stat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    bytes += static_cast<uint64_t>(status.st_size);
    const std::string name = entry->path().lexically_relative(path).string();
    lines.push_back(name + "\t" + std::to_string(status.st_size) + "\t" +
                    std::to_string(nanoseconds(status.st_mtim)) + "\t" +
                    std::to_string(status.st_ino) + "\n");
    changes.push_back(name + "\t" + std::to_string(nanoseconds(status.st_ctim)) + "\n");
  }
  return {{"Files", lines.size()},
          {"Bytes", bytes},
          {"Listing", digest_of(std::move(lines))},
          {"Changed", digest_of(std::move(changes))}};
}

/// Returns the SHA-256 of a file; of a folder, that of the lines "<sha256>  <name>" of its files
/// (and those of the folders below) in the order of their names. Empty for what is neither.
/// `known`: digests of files of the folder, by path. Throws InputError.
std::string input_digest(const std::string& path, const std::map<std::string, std::string>& known) {
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
  std::ranges::sort(files);
  std::string rows;
  for (const std::string& file : files) {
    const std::string whole = (fs::path(path) / file).string();
    const auto found = known.find(whole);
    rows += (found != known.end() ? found->second : sha256_of_file(whole)) + "  " + file + "\n";
  }
  return sha256_of(rows);
}

}  // namespace

Json input_stamp(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return nullptr;
  if (S_ISDIR(status.st_mode)) return folder_stamp(path);
  if (!S_ISREG(status.st_mode)) return nullptr;
  return {{"Bytes", static_cast<uint64_t>(status.st_size)},
          {"Modified", nanoseconds(status.st_mtim)},
          {"Changed", nanoseconds(status.st_ctim)},
          {"Inode", static_cast<uint64_t>(status.st_ino)}};
}

void InputDigests::note(const std::string& path) {
  const Json stamp = input_stamp(path);
  const std::lock_guard lock(mutex_);
  noted_.emplace(path, stamp);
}

void InputDigests::know(const std::string& path, const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto noted = noted_.find(path);
  if (noted != noted_.end()) digests_.emplace(path + "\n" + noted->second.dump(), digest);
  const std::string folder = fs::path(path).parent_path().string();
  if (noted_.contains(folder)) files_[folder].emplace(path, digest);
}

DigestSink InputDigests::sink() {
  return [this](const std::string& path, const std::string& digest) { know(path, digest); };
}

Json InputDigests::record(const std::string& path) {
  Json stamp = input_stamp(path);
  if (stamp.is_null()) return Json::object();
  const std::string key = path + "\n" + stamp.dump();
  std::map<std::string, std::string> files;
  {
    const std::lock_guard lock(mutex_);
    const auto noted = noted_.find(path);
    if (noted != noted_.end() && noted->second != stamp) {
      stamp["ChangedDuringRun"] = true;
      return stamp;
    }
    if (noted != noted_.end()) files = files_[path];
    const auto known = digests_.find(key);
    if (known != digests_.end()) {
      stamp["SHA256"] = known->second;
      return stamp;
    }
  }
  const std::string digest = input_digest(path, files);
  if (digest.empty() || input_stamp(path) != stamp) {
    stamp["ChangedDuringRun"] = true;
    return stamp;
  }
  stamp["SHA256"] = digest;
  const std::lock_guard lock(mutex_);
  digests_.emplace(key, digest);
  return stamp;
}

namespace {

using config::Json;

constexpr const char* kConfigRole = "config";

std::string name_of(const config::Leaf& leaf) {
  return leaf.flag.substr(2);
}

/// Values of the flags that decide the results.
Json options_of(const CommandLine& line) {
  Json options = Json::object();
  for (const config::Leaf& leaf : line.app) {
    const bool is_path = leaf.node.path || (leaf.node.prototype && leaf.node.prototype().path);
    if (!is_path && leaf.node.has_effect) options[name_of(leaf)] = config::to_json(leaf.node);
  }
  return options;
}

/// Names of inputs whose content does not count: what they say is recorded in another way.
std::set<std::string> roles_without_effect(const CommandLine& line) {
  std::set<std::string> roles{kConfigRole};
  for (const config::Leaf& leaf : line.app) {
    if (!leaf.node.has_effect) roles.insert(name_of(leaf));
  }
  return roles;
}

/// "a.b.c": value, for everything that is not an object.
using Flat = std::map<std::string, Json>;
void flatten(const Json& json, const std::string& prefix, Flat& to) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", to);
    } else {
      to[prefix + key] = value;
    }
  }
}

void collect_without_effect(const config::Node& node, const std::string& prefix,
                            std::set<std::string>& to) {
  for (const config::Node& member : node.members) {
    if (!member.has_effect) to.insert(prefix + member.key);
    if (member.has_effect) collect_without_effect(member, prefix + member.key + ".", to);
  }
}

bool is_below(const std::string& key, const std::set<std::string>& names) {
  return std::ranges::any_of(
      names, [&](const std::string& name) { return key == name || key.starts_with(name + "."); });
}

std::string shown(const Json& value) {
  constexpr size_t kLongest = 60;
  std::string text = json_text(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest - 3) + "...";
  return text;
}

void compare_values(const Json& there, const Json& now, const std::string& prefix,
                    const std::set<std::string>& ignored, std::vector<std::string>& found) {
  Flat old_values, new_values;
  if (there.is_object()) flatten(there, "", old_values);
  flatten(now, "", new_values);
  for (const auto& [key, value] : new_values) {
    if (is_below(key, ignored)) continue;
    const auto old_value = old_values.find(key);
    if (old_value == old_values.end()) {
      found.push_back(prefix + key + ": not known there, " + shown(value) + " now");
    } else if (old_value->second != value) {
      found.push_back(prefix + key + ": " + shown(old_value->second) + " there, " + shown(value) +
                      " now");
    }
  }
  for (const auto& [key, value] : old_values) {
    if (is_below(key, ignored) || new_values.contains(key)) continue;
    found.push_back(prefix + key + ": " + shown(value) + " there, not known now");
  }
}

/// An input on one of the two sides.
struct Content {
  std::string role, of_case, path, digest;
};

std::vector<Content> contents_there(const Json& inputs, const std::set<std::string>& ignored) {
  std::vector<Content> contents;
  for (const Json& input : inputs) {
    if (!input.is_object() || ignored.contains(text_at(input, "Role"))) continue;
    contents.push_back({text_at(input, "Role"), text_at(input, "Case"), text_at(input, "Path"),
                        text_at(input, "SHA256")});
  }
  return contents;
}

/// Digests that are known by the stamps of `inputs`, so that the files need not be read.
std::map<std::string, std::string> known_digests(const Json& inputs) {
  std::map<std::string, std::string> known;
  for (const Json& input : inputs) {
    if (!input.is_object()) continue;
    Json stamp = Json::object();
    for (const char* key : {"Files", "Bytes", "Modified", "Listing", "Changed", "Inode"}) {
      if (input.contains(key)) stamp[key] = input[key];
    }
    known[stamp.dump(-1, ' ', false, Json::error_handler_t::replace)] = text_at(input, "SHA256");
  }
  return known;
}

std::vector<Content> contents_now(const ResultsBasis& now, const Json& inputs_there,
                                  const std::set<std::string>& ignored, InputDigests& digests) {
  const auto known = known_digests(inputs_there);
  std::vector<Content> contents;
  for (const RunInput& input : now.inputs) {
    if (ignored.contains(input.role)) continue;
    if (!input.text.empty()) {
      contents.push_back({input.role, input.of_case, input.text, sha256_of(input.text)});
      continue;
    }
    const Json stamp = input_stamp(input.path);
    const std::string why = stamp.is_null() ? why_missing(input.path) : "";
    if (!why.empty()) {
      throw InputError(input.role + " '" + input.path + "' " + why +
                       "; check the name and the current folder");
    }
    const auto found = stamp.is_null() ? known.end() : known.find(stamp.dump());
    const bool is_known = found != known.end() && !found->second.empty();
    contents.push_back({input.role, input.of_case, input.path,
                        is_known ? found->second : text_at(digests.record(input.path), "SHA256")});
  }
  return contents;
}

std::string described(const Content& content) {
  const std::string of_case = content.of_case.empty() ? "" : "case '" + content.of_case + "', ";
  return of_case + content.role + " '" + content.path + "'";
}

void compare_in_order(const std::vector<Content>& there, const std::vector<Content>& now,
                      std::vector<std::string>& found) {
  struct OfRole {
    std::vector<const Content*> there, now;
  };
  std::map<std::string, OfRole> roles;
  for (const Content& one : there) roles[one.role].there.push_back(&one);
  for (const Content& one : now) roles[one.role].now.push_back(&one);
  for (const auto& [role, both] : roles) {
    if (both.there.size() != both.now.size()) {
      found.push_back(role + ": " + std::to_string(both.there.size()) + " there, " +
                      std::to_string(both.now.size()) + " now");
      continue;
    }
    for (size_t i = 0; i < both.now.size(); ++i) {
      const Content &then = *both.there[i], &one = *both.now[i];
      if (then.of_case != one.of_case) {
        found.push_back(described(one) + ": of case '" + then.of_case + "' there");
      } else if (then.digest.empty() || one.digest.empty()) {
        found.push_back(described(one) + ": its content is not known, there or now");
      } else if (then.digest != one.digest) {
        found.push_back(described(one) + ": other content");
      }
    }
  }
}

/// Compares what the cases of both sides hold, whatever their order and ids.
void compare_cases(std::vector<Content>& there, std::vector<Content>& now,
                   std::vector<std::string>& found) {
  using Contents = std::multiset<std::string>;
  const auto take = [](std::vector<Content>& contents) {
    std::map<std::string, Contents> by_case;
    for (const Content& one : contents) {
      // An unknown content is like no other.
      const std::string digest = one.digest.empty() ? "unknown: " + one.path : one.digest;
      if (!one.of_case.empty()) by_case[one.of_case].insert(one.role + " " + digest);
    }
    std::erase_if(contents, [](const Content& one) { return !one.of_case.empty(); });
    std::multiset<Contents> cases;
    for (auto& [id, held] : by_case) cases.insert(std::move(held));
    return cases;
  };
  const std::multiset<Contents> old_cases = take(there), new_cases = take(now);
  std::vector<Contents> fresh, gone;
  std::set_difference(new_cases.begin(), new_cases.end(), old_cases.begin(), old_cases.end(),
                      std::back_inserter(fresh));
  std::set_difference(old_cases.begin(), old_cases.end(), new_cases.begin(), new_cases.end(),
                      std::back_inserter(gone));
  if (fresh.empty() && gone.empty()) return;
  found.push_back("cases of the list: " + std::to_string(fresh.size()) + " are new or changed, " +
                  std::to_string(gone.size()) + " of then are not there now");
}

}  // namespace

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<RunInput> flag_inputs(const std::vector<GivenPath>& paths, const CommandLine& line,
                                  bool by_case) {
  std::vector<RunInput> inputs;
  for (const GivenPath& given : paths) {
    // The images of a folder are inputs by themselves, and so are the files of cases.
    const bool is_listed = is_folder(given.path) && (by_case || given.role == PathRole::kInputList);
    if (!is_output(given.role) && !is_listed) {
      inputs.push_back({given.flag.substr(2), given.path});
    }
  }
  for (const InputFile& file : line.common.configs) {
    if (file.path != "-") inputs.push_back({kConfigRole, file.path});
  }
  return inputs;
}

Json results_record(const ResultsBasis& basis, InputDigests& digests) {
  Json inputs = Json::array();
  for (const RunInput& input : basis.inputs) {
    Json one{{"Role", input.role}};
    if (!input.of_case.empty()) one["Case"] = input.of_case;
    if (input.text.empty()) {
      one["Path"] = input.path;
      one.update(digests.record(input.path));
    } else {
      one["Text"] = input.text;
      one["SHA256"] = sha256_of(input.text);
    }
    inputs.push_back(one);
  }
  return {
      {"App", basis.program.info.name},    {"ResultsVersion", basis.program.info.results_version},
      {"Options", options_of(basis.line)}, {"Config", config::to_json(basis.program.config)},
      {"Seed", basis.line.common.seed},    {"Inputs", inputs}};
}

std::vector<std::string> differences(const Json& there, const ResultsBasis& now,
                                     InputDigests& digests) {
  std::vector<std::string> found;
  const AppInfo& info = now.program.info;
  const auto at = [&there](const char* key) {
    const auto value = there.find(key);
    return value == there.end() ? Json() : *value;
  };
  if (at("App") != info.name) {
    return {"made by " + shown(at("App")) + ", not by " + info.name};
  }
  if (at("ResultsVersion") != info.results_version) {
    found.push_back("version of the results: " + shown(at("ResultsVersion")) + " there, " +
                    std::to_string(info.results_version) + " now");
  }
  if (info.uses_seed && at("Seed") != now.line.common.seed) {
    found.push_back("--seed: " + shown(at("Seed")) + " there, " +
                    std::to_string(now.line.common.seed) + " now");
  }
  compare_values(at("Options"), options_of(now.line), "--", {}, found);
  std::set<std::string> ignored;
  collect_without_effect(now.program.config, "", ignored);
  compare_values(at("Config"), config::to_json(now.program.config), "", ignored, found);
  const std::set<std::string> roles = roles_without_effect(now.line);
  const Json inputs = at("Inputs").is_array() ? at("Inputs") : Json::array();
  std::vector<Content> old_ones = contents_there(inputs, roles);
  std::vector<Content> new_ones = contents_now(now, inputs, roles, digests);
  if (!now.order_matters) compare_cases(old_ones, new_ones, found);
  compare_in_order(old_ones, new_ones, found);
  return found;
}

}  // namespace larch::detail
