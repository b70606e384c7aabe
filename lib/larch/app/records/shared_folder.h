// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// What runs share that write into one folder at the same time, perhaps on several hosts: a hidden
// folder ".larch" in it with a lock and the parts that single runs leave there.
namespace larch {

/// The name of the hidden folder in `folder`, which is made if it is missing. Throws OutputError;
/// also if the name is taken by something that is not a folder.
std::string parts_folder(const std::string& folder);

/// Files in parts_folder(folder) called <prefix><32 hexadecimal digits><ending>, with their folder,
/// in the order of their names. Empty if there is no such folder.
std::vector<std::string> parts_in(const std::string& folder, const std::string& prefix,
                                  const std::string& ending);

/// The text of a regular file that nobody vouches for. Empty if it is missing, is not a regular
/// file (a pipe is not waited for), cannot be read or has more bytes than `most`.
std::optional<std::string> read_untrusted(const std::string& path, size_t most);

/// Gives a file that cannot be understood the name "<path>.kept-<32 hexadecimal digits>", which is
/// returned; empty if that failed.
std::string keep_aside(const std::string& path);

/// The right to rewrite what all runs into a folder share, held until the object ends; for the
/// moment of the rewriting only. It is an flock on ".larch/lock", an empty file that stays, or on
/// the folder itself, in which nothing is made for it; NFS has none on folders.
class FolderLock {
 public:
  enum class On { kLockFile, kFolder };
  enum class State {
    kTaken,
    kBusy,        ///< another run held it all the time; it may be stopped
    kUnsupported  ///< the file system has no locks, or the file cannot be made
  };

  /// Tries for `seconds`, at least once.
  FolderLock(const std::string& folder, double seconds, On on = On::kLockFile);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  State state() const { return state_; }

 private:
  int file_ = -1;
  State state_ = State::kUnsupported;
};

/// How long a run waits for a lock. Rewriting and giving names take milliseconds.
constexpr double kLockSeconds = 10;

}  // namespace larch
