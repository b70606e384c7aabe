// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/sidecar_commit.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "larch/app/outputs/paths_check.h"
#include "larch/app/records/existing.h"
#include "larch/app/records/shared_folder.h"
#include "larch/app/records/sidecar.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;

/// A sidecar as it was before the outputs were replaced.
struct Old {
  std::string path;
  std::optional<std::string> text;
};

void put_back(const std::vector<Old>& olds, const Context& context) {
  for (const Old& old : olds) {
    std::error_code ignored;
    fs::remove(old.path, ignored);
    if (!old.text) continue;
    try {
      FileSet file(/*replace=*/true, context);
      file.write(old.path, text_writer(*old.text));
      file.commit();
    } catch (const OutputError&) {
      // Without its sidecar the output is not taken for that of any run.
    }
  }
}

/// How the sidecar of an output gets its name.
enum class Turn {
  kNone,        ///< none is written
  kFirst,       ///< before its output, whose name is free
  kOverOrphan,  ///< the same, in place of the sidecar of an output that is not there
  kReplaced     ///< after its output, which is replaced
};

Turn turn_of(const Sidecar& one, bool replace) {
  if (one.text.empty()) return Turn::kNone;
  if (one.may_hold_files ? replace : path_exists(one.output)) return Turn::kReplaced;
  return is_orphan(one.path, one.output) ? Turn::kOverOrphan : Turn::kFirst;
}

std::vector<Turn> turns_of(const std::vector<Sidecar>& sidecars, bool replace) {
  std::vector<Turn> turns;
  turns.reserve(sidecars.size());
  for (const Sidecar& one : sidecars) turns.push_back(turn_of(one, replace));
  return turns;
}

/// The sidecars as files that are written and wait for their names.
struct WrittenSidecars {
  WrittenSidecars(bool replace, const Context& context, const Context& to_the_end)
      : first(replace, context),
        over_orphans(/*replace=*/true, context),
        marks(/*replace=*/true, to_the_end),
        last(/*replace=*/true, to_the_end) {}

  void write(const std::vector<Sidecar>& sidecars, const std::vector<Turn>& turns,
             const std::string& app) {
    for (size_t i = 0; i < sidecars.size(); ++i) {
      const Sidecar& one = sidecars[i];
      if (turns[i] == Turn::kNone) continue;
      FileSet& files = turns[i] == Turn::kReplaced     ? last
                       : turns[i] == Turn::kOverOrphan ? over_orphans
                                                       : first;
      files.write(one.path, text_writer(one.text));
      if (turns[i] != Turn::kReplaced) continue;
      marks.write(one.path, text_writer(sidecar_of_replaced(app, one.names)));
    }
  }

  FileSet first, over_orphans, marks, last;
};

/// Without a sidecar of its own an output does not keep that of an earlier one.
bool goes_with_output(const Sidecar& one) {
  if (!one.text.empty()) return false;
  return one.may_hold_files ? is_sidecar(one.path) : is_sidecar_of(one.path, one.output);
}

/// The locks of folders that are known by several names are taken once, and by all runs in the same
/// order.
void lock_folders(const std::set<std::string>& folders, double seconds,
                  std::list<FolderLock>& locks) {
  std::map<std::pair<dev_t, ino_t>, std::string> by_file;
  for (const std::string& folder : folders) {
    struct stat status {};
    if (stat(folder.c_str(), &status) == 0) by_file[{status.st_dev, status.st_ino}] = folder;
  }
  for (const auto& [file, folder] : by_file) {
    const FolderLock& lock = locks.emplace_back(folder, seconds, FolderLock::On::kFolder);
    if (lock.state() != FolderLock::State::kBusy) continue;
    char waited[32];
    std::snprintf(waited, sizeof waited, "%.3g s", seconds);
    throw OutputError("cannot give the outputs in '" + folder +
                      "' their names: another run holds the lock of the folder and did not let it "
                      "go for " +
                      waited + "; look whether it is stopped, then run again");
  }
}

std::string appeared(const std::string& path) {
  return "cannot write '" + path +
         "': it appeared or was changed during the run, by another run perhaps; --force replaces "
         "it";
}

/// By what a file is known again; empty if there is none.
std::string stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
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

}  // namespace

void SeenOutputs::note(const std::string& path) {
  if (is_stream(path)) return;
  const std::string stamp = stamp_of(path);
  const std::lock_guard lock(mutex_);
  stamps_[path] = stamp;
}

bool SeenOutputs::is_as_noted(const std::string& path) const {
  const std::string stamp = stamp_of(path);
  const std::lock_guard lock(mutex_);
  const auto noted = stamps_.find(path);
  return noted == stamps_.end() || noted->second == stamp;
}

void commit_with_sidecars(FileSet& files, const std::vector<Sidecar>& sidecars,
                          const std::string& app, bool replace, const Context& context,
                          const SeenOutputs* seen, double lock_seconds) {
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  // Written before the lock is taken, since that takes time on a slow disk.
  std::vector<Turn> turns = turns_of(sidecars, replace);
  std::optional<WrittenSidecars> written;
  written.emplace(replace, context, to_the_end).write(sidecars, turns, app);
  std::set<std::string> folders = files.folders();
  for (const Sidecar& one : sidecars) folders.insert(folder_of(one.path));
  std::list<FolderLock> locks;
  lock_folders(folders, lock_seconds, locks);
  if (seen != nullptr) {
    for (const std::string& path : files.names()) {
      if (!seen->is_as_noted(path)) throw OutputAppeared(appeared(path));
    }
  }
  if (const auto now = turns_of(sidecars, replace); now != turns) {
    turns = now;
    written.emplace(replace, context, to_the_end).write(sidecars, turns, app);
  }
  std::vector<Old> changed;
  for (size_t i = 0; i < sidecars.size(); ++i) {
    const Sidecar& one = sidecars[i];
    if (turns[i] == Turn::kNone && !goes_with_output(one)) continue;
    // Should this run fail, the sidecar of an output that is not there does not come back.
    const bool is_left_alone = turns[i] == Turn::kOverOrphan || is_orphan(one.path, one.output);
    changed.push_back(
        {one.path, is_left_alone ? std::nullopt : read_untrusted(one.path, kMostSidecarBytes)});
  }
  folders.clear();
  written->first.give_names(folders);
  try {
    written->over_orphans.give_names(folders);
    written->marks.give_names(folders);
    for (const Sidecar& one : sidecars) {
      std::error_code ignored;
      if (goes_with_output(one)) fs::remove(one.path, ignored);
    }
    files.give_names(folders);
  } catch (...) {
    put_back(changed, to_the_end);
    throw;
  }
  written->last.give_names(folders);
  locks.clear();
  for (const std::string& folder : folders) flush_folder(folder);
}

}  // namespace larch::detail
