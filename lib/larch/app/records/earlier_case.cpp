// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "larch/app/records/case_record.h"
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

std::string other_run(const std::string& record, const std::vector<std::string>& differences) {
  constexpr size_t kNamed = 4;
  std::string what;
  for (size_t i = 0; i < std::min(differences.size(), kNamed); ++i) what += differences[i] + "; ";
  if (differences.size() > kNamed) what += std::to_string(differences.size() - kNamed) + " more; ";
  return "outputs of another run are there ('" + record + "'): " + what + "--force recomputes";
}

bool holds_files(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_temporary_name(at->path().filename().string())) return true;
  }
  return false;
}

/// A case, what its record names, and what is said of what is there.
class Look {
 public:
  Look(const CaseFiles& files, const ResultsBasis& basis)
      : files_(files), line_(basis.line), app_(basis.program.info.name) {}

  void name(const std::vector<NamedFile>& files) {
    has_record_ = true;
    for (const NamedFile& file : files) named_.emplace(resolved_name(file.path), file.role);
  }

  /// Names a file that is there although no record tells that it may be replaced; empty: none.
  std::string unknown() const {
    for (const CaseOutput& output : files_.outputs) {
      if (!is_there(output.path, output.role) || is_named(output.path)) continue;
      if (!line_.common.skip_existing) return exists(output.path);
      return "output '" + output.path + "' exists, but '" + files_.record +
             "' does not tell what made it; move it away, or --force replaces it";
    }
    for (const std::string& path : files_.companions) {
      if (!is_taken(path) || is_named(path)) continue;
      const auto resumes = [](const config::Leaf& leaf) { return leaf.flag == "--resume"; };
      const bool may_go_on = std::any_of(line_.app.begin(), line_.app.end(), resumes);
      return "'" + path + "' exists, and no record tells that it belongs to the outputs; " +
             (may_go_on ? "if it is a checkpoint, --resume goes on from it; else " : "") +
             "move it away, or --force replaces it";
    }
    if (files_.folder.empty() || has_record_ || !holds_files(files_.folder)) return "";
    return "output folder '" + files_.folder +
           "' is not empty; use --force to write into it or --skip-existing to keep it";
  }

  /// Compares what is there with a whole record of the same basis. Tells whether all is there; what
  /// is wrong goes to `problem`.
  bool is_whole(const std::vector<NamedFile>& recorded, std::string& problem) const {
    bool whole = true;
    for (const NamedFile& file : recorded) {
      if (files_.folder.empty() && !is_wanted(file.role)) continue;
      if (!is_there(file.path, file.role)) {
        whole = false;
        continue;
      }
      const std::string why = why_not_as_written(file);
      if (why.empty() || !problem.empty()) continue;
      problem = "output '" + file.path + "' is not what its run wrote: it " + why +
                "; move it away, or --force replaces it";
    }
    for (const CaseOutput& output : files_.outputs) {
      if (named_.contains({resolved_name(output.path), output.role})) continue;
      whole = false;
      if (!problem.empty() || !is_there(output.path, output.role)) continue;
      problem = "'" + files_.record + "' does not name output '" + output.path + "' as --" +
                output.role + "; move it away, or --force replaces it";
    }
    return whole;
  }

  /// Names a file that only --force or --skip-existing allow to be there; empty: none. A folder
  /// with a record is never free.
  std::string in_the_way() const {
    if (!files_.folder.empty()) return exists(files_.folder);
    for (const CaseOutput& output : files_.outputs) {
      if (is_there(output.path, output.role)) return exists(output.path);
    }
    return "";
  }

 private:
  /// Tells whether an output is there. The report of a run that failed is replaced as if it were
  /// not.
  bool is_there(const std::string& path, const std::string& role) const {
    return is_taken(path) && !(role == "report" && report_status(path, app_) == kFailed);
  }
  static std::string exists(const std::string& path) {
    return "output '" + path + "' exists; use --force to replace it or --skip-existing to keep it";
  }
  bool is_wanted(const std::string& role) const {
    return std::ranges::count(files_.outputs, role, &CaseOutput::role) > 0;
  }
  bool is_named(const std::string& path) const {
    const std::string name = resolved_name(path);
    const auto found = named_.lower_bound({name, ""});
    return found != named_.end() && found->first == name;
  }

  const CaseFiles& files_;
  const CommandLine& line_;
  const std::string& app_;
  std::set<std::pair<std::string, std::string>> named_;  // by the record: resolved name and role
  bool has_record_ = false;
};

}  // namespace

std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 && lstat(path.c_str(), &status) != 0) return "";
  const auto text = [](auto number) { return std::to_string(number) + " "; };
  return text(status.st_dev) + text(status.st_ino) + text(status.st_size) +
         text(status.st_mtim.tv_sec) + text(status.st_mtim.tv_nsec) + text(status.st_ctim.tv_sec) +
         text(status.st_ctim.tv_nsec);
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
  const auto text = read_untrusted(files.record, kMaximumRecordBytes);
  const auto larch = text ? parse_record(*text, files.record) : std::nullopt;
  Look look(files, basis);
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
    std::vector<std::string> found;
    if (status != kWriting) found = differences(*larch, basis, digests);
    const auto is_there = [](const NamedFile& file) { return is_taken(file.path); };
    earlier.has_same_basis = status != kWriting && found.empty();
    if (earlier.has_same_basis) {
      const bool whole = look.is_whole(recorded, problem);
      if (problem.empty() && !flags.skip_existing) problem = look.in_the_way();
      if (problem.empty()) problem = look.unknown();
      if (problem.empty() && whole && flags.skip_existing) {
        earlier.state = EarlierCase::State::kSkip;
        earlier.what = "all outputs are there, from the same inputs and configuration";
        earlier.is_rejected = status == "rejected";
        earlier.reason = text_at(*larch, "Reason");
        return earlier;
      }
    } else if (!found.empty() && std::any_of(recorded.begin(), recorded.end(), is_there)) {
      problem = other_run(files.record, found);
    } else {
      problem = look.unknown();
    }
  }
  if (!problem.empty() && !flags.force) {
    earlier.state = EarlierCase::State::kOther;
    earlier.what = problem;
  }
  return earlier;
}

}  // namespace larch::detail
