// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/shared_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/core/error.h"
#include "larch/files/temporaries.h"

namespace larch {
namespace {

namespace fs = std::filesystem;

std::string hidden_name(const std::string& folder) {
  return (fs::path(folder) / ".larch").string();
}

bool is_part_name(const std::string& name, const std::string& prefix, const std::string& ending) {
  if (name.size() < prefix.size() + ending.size()) return false;
  if (!name.starts_with(prefix) || !name.ends_with(ending)) return false;
  return is_random_hex(
      std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - ending.size()));
}

bool is_plain_folder(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// A descriptor or -1. Links are not followed, and what is not a regular file is closed again.
int open_lock_file(const std::string& path) {
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  // The file of another user: a lock does not need the right to write.
  if (file < 0) file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (file >= 0 && (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))) {
    close(file);
    return -1;
  }
  return file;
}

}  // namespace

std::string parts_folder(const std::string& folder) {
  std::string path = hidden_name(folder);
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    throw OutputError("cannot make folder '" + path + "': " + std::strerror(errno) +
                      ": check the free space and the folder's permissions");
  }
  if (!is_plain_folder(path)) {
    throw OutputError("'" + path + "' is not a folder; remove it");
  }
  return path;
}

std::vector<std::string> parts_in(const std::string& folder, const std::string& prefix,
                                  const std::string& ending) {
  std::vector<std::string> parts;
  const std::string hidden = hidden_name(folder);
  if (!is_plain_folder(hidden)) return parts;
  std::error_code error;
  for (fs::directory_iterator entry(hidden, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_part_name(entry->path().filename().string(), prefix, ending)) {
      parts.push_back(entry->path().string());
    }
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

std::optional<std::string> read_untrusted(const std::string& path, size_t most) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  struct stat status {};
  bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
              static_cast<uint64_t>(status.st_size) <= most;
  std::string text;
  std::array<char, 1 << 16> block;
  while (good) {
    const ssize_t got = read(file, block.data(), block.size());
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    good = got > 0 && text.size() + static_cast<size_t>(got) <= most;
    if (good) text.append(block.data(), static_cast<size_t>(got));
  }
  close(file);
  return good ? std::optional(std::move(text)) : std::nullopt;
}

std::string keep_aside(const std::string& path) {
  const std::string kept = path + ".kept-" + random_hex();
  return std::rename(path.c_str(), kept.c_str()) == 0 ? kept : "";
}

FolderLock::FolderLock(const std::string& folder, double seconds, On on) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  try {
    file_ = on == On::kFolder ? open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                              : open_lock_file(parts_folder(folder) + "/lock");
  } catch (const OutputError&) {
    return;
  }
  if (file_ < 0) return;
  // Tried again and again, since a waiting flock could not be given up.
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return;
    state_ = State::kBusy;
    if (std::chrono::duration<double>(Clock::now() - start).count() >= seconds) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  state_ = State::kTaken;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace larch
