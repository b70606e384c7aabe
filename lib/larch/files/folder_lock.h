// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace larch {

/// The right to give names to files in a folder, held until the object ends. It is an flock on the
/// folder itself, in which nothing is made for it; NFS has none on folders.
class FolderLock {
 public:
  enum class State {
    kTaken,
    kBusy,        ///< another run held it all the time; it may be stopped
    kUnsupported  ///< the file system has no such locks
  };

  /// Tries for `seconds`, at least once.
  FolderLock(const std::string& folder, double seconds);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  State state() const { return state_; }

 private:
  int file_ = -1;
  State state_ = State::kUnsupported;
};

/// How long a run waits for a lock. Giving names takes milliseconds.
constexpr double kLockSeconds = 10;

}  // namespace larch
