// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/paths_check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "larch/app/records/case_record.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;

void collect(const std::string& flag, const config::Node& node, std::vector<GivenPath>& found) {
  if (node.path && node.kind == config::Kind::kString) {
    const std::string path = std::get<std::string>(node.get());
    if (!path.empty()) found.push_back({flag, *node.path, path});
  } else if (node.size) {
    for (size_t i = 0; i < node.size(); ++i) collect(flag, node.at(i), found);
  } else {
    for (const config::Node& member : node.members) collect(flag, member, found);
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) || resolved_name(a) == resolved_name(b);
}

/// A log is text; an image that only a list names is not. True also if there is nothing yet.
bool holds_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4096> start{};
  file.read(start.data(), start.size());
  return std::none_of(start.data(), start.data() + file.gcount(),
                      [](char c) { return static_cast<unsigned char>(c) < '\t'; });
}

void check_input(const GivenPath& given) {
  const std::string name = given.flag + ": '" + given.path + "'";
  const std::string why = why_missing(given.path);
  if (!why.empty()) throw InputError(name + " " + why + "; check the name and the current folder");
  const bool folder = is_folder(given.path);
  if (folder && (given.role == PathRole::kInputMesh || given.role == PathRole::kInputFile)) {
    throw InputError(name + " is a folder; a file is needed");
  }
  if (access(given.path.c_str(), R_OK | (folder ? X_OK : 0)) != 0) {
    throw InputError(name + " may not be read: " + std::strerror(errno));
  }
}

/// A folder that is missing is made later, below the nearest one that exists.
void check_output_folder(const std::string& path) {
  std::error_code error;
  fs::path there = fs::absolute(path, error);
  while (!error && there.has_relative_path() && !fs::exists(there, error)) {
    there = there.parent_path();
  }
  if (error) {
    throw OutputError("output folder '" + path + "': " + error.message() +
                      "; correct the name, or change into a folder that exists");
  }
  try {
    AtomicFile((there / new_temporary_name("")).string()).flush(/*may_be_empty=*/true);
  } catch (const OutputError& why) {
    throw OutputError("output folder '" + path + "': " + why.what());
  }
}

}  // namespace

std::vector<GivenPath> given_paths(const CommandLine& line) {
  std::vector<GivenPath> found;
  for (const auto* group : {&line.app, &line.config}) {
    for (const config::Leaf& leaf : *group) collect(leaf.flag, leaf.node, found);
  }
  return found;
}

void check_usage(const CommandLine& line) {
  for (const config::Leaf& leaf : line.app) {
    if (leaf.node.required && leaf.given.empty()) {
      throw UsageError(leaf.flag + " is missing (" + leaf.node.help + "); see --help");
    }
    for (const std::string& word : leaf.given) {
      if (word.empty()) throw UsageError(leaf.flag + ": the value is empty");
    }
  }
}

void check_inputs(const std::vector<GivenPath>& paths) {
  for (const GivenPath& given : paths) {
    if (!is_output(given.role)) check_input(given);
  }
}

std::vector<std::string> PlannedOutputs::all() const {
  std::vector<std::string> names;
  for (const CaseOutput& output : files.outputs) names.push_back(output.path);
  names.insert(names.end(), files.companions.begin(), files.companions.end());
  if (!files.record.empty()) names.push_back(files.record);
  return names;
}

bool is_below(const std::string& path, const std::vector<std::string>& folders) {
  return std::ranges::any_of(folders, [&](const fs::path& folder) {
    const fs::path below =
        fs::path(path).lexically_normal().lexically_relative(folder.lexically_normal());
    return !below.empty() && *below.begin() != "..";
  });
}

PlannedOutputs planned_outputs(const CommandLine& line, const std::vector<GivenPath>& paths,
                               const std::vector<std::string>& companions, bool by_case) {
  PlannedOutputs planned;
  CaseFiles& files = planned.files;
  for (const GivenPath& given : paths) {
    if (given.role == PathRole::kOutputDir) {
      planned.folders.push_back(given.path);
      if (!by_case) files.folder = given.path;
    } else if (given.role == PathRole::kOutputPage) {
      planned.folders.push_back(given.path);
      files.outputs.push_back({page_name(given.path), given.flag.substr(2)});
    } else if (is_output(given.role)) {
      files.outputs.push_back({given.path, given.flag.substr(2)});
    }
  }
  files.companions = companions;
  const std::string& report = line.common.report;
  if (!report.empty() && report != "-") files.outputs.push_back({report, "report"});
  if (by_case || line.common.no_sidecar) return planned;
  if (!files.folder.empty()) {
    files.record = folder_record_name(files.folder);
  } else if (!files.outputs.empty()) {
    files.record = record_name(files.outputs.front().path);
  }
  return planned;
}

void ReadFiles::add(const RunInput& input, bool is_listed) {
  if (!input.text.empty()) return;
  const std::string role = is_listed ? "an input of the list" : "read as --" + input.role;
  roles_.try_emplace(resolved_name(input.path), role);
  struct stat status {};
  if (::stat(input.path.c_str(), &status) != 0) return;
  files_.try_emplace({status.st_dev, status.st_ino}, role);
}

void ReadFiles::refuse(const std::string& output) const {
  const auto refuse = [&](const std::string& role) {
    throw UsageError("'" + output + "' is " + role +
                     " and would be replaced; give the output another name or folder");
  };
  const auto named = roles_.find(resolved_name(output));
  if (named != roles_.end()) refuse(named->second);
  struct stat status {};
  if (::stat(output.c_str(), &status) != 0) return;
  const auto found = files_.find({status.st_dev, status.st_ino});
  if (found != files_.end()) refuse(found->second);
}

void check_distinct(const std::vector<RunInput>& inputs, const PlannedOutputs& planned) {
  std::set<std::string> names;
  std::vector<std::string> all = planned.folders;
  for (const std::string& output : planned.all()) all.push_back(output);
  for (const std::string& name : all) {
    if (!names.insert(resolved_name(name)).second) {
      throw UsageError("'" + name + "' would be written twice; give other names");
    }
  }
  refuse_replacing(inputs, planned);
}

void refuse_replacing(const std::vector<RunInput>& inputs, const PlannedOutputs& planned) {
  ReadFiles read;
  for (const RunInput& input : inputs) read.add(input, !input.of_case.empty());
  for (const std::string& output : planned.all()) read.refuse(output);
}

void check_log_file(const CommandLine& line, const std::vector<GivenPath>& paths,
                    const PlannedOutputs& planned) {
  const std::string& log = line.common.log_file;
  const auto refuse_if_same = [&log](const std::string& path, const std::string& what) {
    if (!is_same_file(log, path)) return;
    throw UsageError("--log-file: '" + log + "' is also " + what +
                     ", and the log would be appended to it; give the log another name");
  };
  for (const GivenPath& given : paths) {
    if (!is_output(given.role)) refuse_if_same(given.path, "read as " + given.flag);
  }
  for (const InputFile& file : line.common.configs) refuse_if_same(file, "read as --config");
  for (const std::string& path : planned.all()) refuse_if_same(path, "the output '" + path + "'");
  for (const std::string& folder : planned.folders) {
    const std::string ending = fs::path(log).extension().string();
    if (ending != ".log" && ending != ".txt" && is_same_file(folder_of(log), folder)) {
      throw UsageError(
          "--log-file: '" + log + "' is in the output folder '" + folder +
          "' and may be a result there; end its name with .log or .txt, or put the log elsewhere");
    }
  }
  if (!holds_text(log)) {
    throw UsageError("--log-file: '" + log +
                     "' is there and holds no text, and the log would be appended to it; give the "
                     "log another name");
  }
}

void check_outputs(const PlannedOutputs& planned) {
  for (const std::string& path : planned.all()) {
    if (!is_below(path, planned.folders)) AtomicFile(path).flush(/*may_be_empty=*/true);
  }
  for (const std::string& path : planned.folders) check_output_folder(path);
}

}  // namespace larch::detail
