// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/folder_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace larch {

FolderLock::FolderLock(const std::string& folder, double seconds)
    : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  if (file_ < 0) return;
  // It is tried again and again, since a waiting flock could not be given up.
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;
    state_ = State::kBusy;
    if (std::chrono::duration<double>(Clock::now() - start).count() >= seconds) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  state_ = State::kTaken;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace larch
