// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include <sys/stat.h>

#include "larch/app/records/record_parts.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

/// Tells whether the name is taken, if only by a link that leads nowhere.
bool is_taken(const std::string& path) {
  return !stamp_of(path).empty();
}

bool has_flag(const CommandLine& line, const std::string& flag) {
  return std::any_of(line.app.begin(), line.app.end(),
                     [&](const config::Leaf& leaf) { return leaf.flag == flag; });
}

std::string other_run(const std::string& record, const Differences& all) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> found = all.settings;
  found.insert(found.end(), all.subject.begin(), all.subject.end());
  std::string what;
  for (size_t i = 0; i < std::min(found.size(), kNamed); ++i) what += found[i] + "; ";
  if (found.size() > kNamed) what += std::to_string(found.size() - kNamed) + " more; ";
  return "outputs of another run are there ('" + record + "'): " + what + "--force recomputes";
}

/// A case, what is there of it, and what is said of that.
class Look {
 public:
  Look(const CaseFiles& files, const CommandLine& line) : files_(files), line_(line) {}

  /// Something is there although no record tells that it may be replaced.
  std::string unknown() const {
    for (const CaseOutput& output : files_.outputs) {
      if (!is_taken(output.path) || is_named(output.path)) continue;
      if (!line_.common.skip_existing) return exists(output.path);
      return "output '" + output.path + "' exists, but '" + files_.record +
             "' does not tell what made it; move it away, or --force replaces it";
    }
    for (const std::string& path : files_.companions) {
      if (is_taken(path) && !is_named(path)) return in_the_way(path);
    }
    if (files_.folder.empty() || named_at_all_ || !holds_files(files_.folder)) return "";
    return "output folder '" + files_.folder +
           "' is not empty; use --force to write into it or --skip-existing to keep it";
  }

  void name(const std::vector<NamedFile>& files) {
    named_at_all_ = true;
    for (const NamedFile& file : files) named_.insert(resolved_name(file.path));
  }

  /// Compares what is there with a whole record of the same basis. Tells whether all is there; what
  /// is wrong goes to `problem`.
  bool is_whole(const std::vector<NamedFile>& recorded, std::string& problem) const {
    bool whole = true;
    for (const NamedFile& file : recorded) {
      if (!files_.folder.empty() || is_wanted(file.role)) {
        whole = look_at(file, problem) && whole;
      }
    }
    for (const CaseOutput& output : files_.outputs) {
      const auto of_role = [&](const NamedFile& file) {
        return file.role == output.role && resolved_name(file.path) == resolved_name(output.path);
      };
      if (std::any_of(recorded.begin(), recorded.end(), of_role)) continue;
      whole = false;
      if (!problem.empty() || !is_taken(output.path)) continue;
      const std::string role = role_there(recorded, output.path);
      problem = "output '" + output.path + "' " +
                (role.empty() ? "is not named by '" + files_.record + "'"
                              : "was --" + role + " of its run, not --" + output.role) +
                "; move it away, or --force replaces it";
    }
    return whole;
  }

  std::string first_there() const {
    if (!files_.folder.empty()) return files_.folder;
    for (const CaseOutput& output : files_.outputs) {
      if (is_taken(output.path)) return output.path;
    }
    return "";
  }

  static std::string exists(const std::string& path) {
    return "output '" + path + "' exists; use --force to replace it or --skip-existing to keep it";
  }

 private:
  bool is_wanted(const std::string& role) const {
    return std::any_of(files_.outputs.begin(), files_.outputs.end(),
                       [&](const CaseOutput& output) { return output.role == role; });
  }
  bool is_named(const std::string& path) const { return named_.contains(resolved_name(path)); }

  static std::string role_there(const std::vector<NamedFile>& recorded, const std::string& path) {
    for (const NamedFile& file : recorded) {
      if (resolved_name(file.path) == resolved_name(path)) return file.role;
    }
    return "";
  }

  /// Tells whether the file is there.
  static bool look_at(const NamedFile& file, std::string& problem) {
    if (!is_taken(file.path)) return false;
    const std::string why = why_not_as_written(file);
    if (!why.empty() && problem.empty()) {
      problem = "output '" + file.path + "' is not what its run wrote: it " + why +
                "; move it away, or --force replaces it";
    }
    return true;
  }

  std::string in_the_way(const std::string& path) const {
    const char* hint = has_flag(line_, "--resume")
                           ? "if an interrupted run left it, --resume goes on from it; else move "
                             "it away, or --force replaces it"
                           : "move it away, or --force replaces it";
    return "'" + path + "' exists, and no record tells that it belongs to the outputs; " + hint;
  }

  static bool holds_files(const std::string& folder) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (!is_temporary_name(at->path().filename().string())) return true;
    }
    return false;
  }

  const CaseFiles& files_;
  const CommandLine& line_;
  std::set<std::string> named_;
  bool named_at_all_ = false;
};

}  // namespace

std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 && lstat(path.c_str(), &status) != 0) return "";
  std::string stamp;
  for (const auto number :
       {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
        static_cast<int64_t>(status.st_size), static_cast<int64_t>(status.st_mtim.tv_sec),
        static_cast<int64_t>(status.st_mtim.tv_nsec), static_cast<int64_t>(status.st_ctim.tv_sec),
        static_cast<int64_t>(status.st_ctim.tv_nsec)}) {
    stamp += std::to_string(number) + " ";
  }
  return stamp;
}

EarlierCase look_at_case(const CaseFiles& files, const ResultsBasis& basis, InputDigests& digests) {
  EarlierCase earlier;
  for (const RunInput& input : basis.inputs) {
    if (input.text.empty()) digests.note(input.path);
  }
  const auto see = [&](const std::string& path) {
    earlier.seen.try_emplace(resolved_name(path), stamp_of(path));
  };
  see(files.record);
  for (const CaseOutput& output : files.outputs) see(output.path);
  for (const std::string& path : files.companions) see(path);

  const CommonFlags& flags = basis.line.common;
  const auto text = read_untrusted(files.record, kMostRecordBytes);
  const auto larch = text ? parse_record(*text, files.record) : std::nullopt;
  Look look(files, basis.line);
  std::string problem;
  if (!larch) {
    problem = look.unknown();
    if (problem.empty() && is_taken(files.record)) {
      problem = "'" + files.record + "' is no record of Larch; move it away";
    }
  } else {
    earlier.record = *text;
    earlier.larch = std::make_shared<const Json>(*larch);
    const std::vector<NamedFile> recorded = named_files(*larch, files.record);
    look.name(recorded);
    // Of a folder, and of files whose names are known late, the record alone tells what is there.
    for (const NamedFile& file : recorded) see(file.path);
    const std::string status = text_at(*larch, "Status");
    const bool is_writing = status == kWriting;
    const Differences found = is_writing ? Differences{} : differences(*larch, basis, digests);
    if (is_writing) {
      problem = look.unknown();
    } else if (!found.none()) {
      const auto is_there = [](const NamedFile& file) { return is_taken(file.path); };
      const bool any = std::any_of(recorded.begin(), recorded.end(), is_there);
      problem = any ? other_run(files.record, found) : look.unknown();
    } else {
      earlier.has_same_basis = true;
      const bool whole = look.is_whole(recorded, problem);
      const std::string there = look.first_there();
      if (problem.empty() && !flags.skip_existing && !there.empty()) problem = Look::exists(there);
      if (problem.empty()) problem = look.unknown();
      if (problem.empty() && whole && flags.skip_existing) {
        earlier.state = EarlierCase::State::kSkip;
        earlier.what = "all outputs are there, from the same inputs and configuration";
        earlier.is_rejected = status == "rejected";
        earlier.reason = text_at(*larch, "Reason");
        return earlier;
      }
    }
  }
  if (!problem.empty() && !flags.force) {
    earlier.state = EarlierCase::State::kOther;
    earlier.what = problem;
  }
  return earlier;
}

}  // namespace larch::detail
