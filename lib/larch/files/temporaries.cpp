// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/temporaries.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <unordered_map>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/core/digest.h"
#include "larch/core/error.h"

namespace larch {
namespace {

constexpr std::string_view kPrefix = ".larch-";
constexpr size_t kRandomDigits = 32;
constexpr std::time_t kOldSeconds = 3600;

/// Digest of the kernel's boot id, which containers share with their host and other machines do
/// not. Empty if it cannot be read.
const std::string& host_digest() {
  static const std::string digest = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    if (!std::getline(file, id) || id.empty()) return std::string();
    return sha256_of(id).substr(0, 16);
  }();
  return digest;
}

/// Entries are never freed or changed but for `in_use`, so that a handler may walk them at any
/// time.
struct Remembered {
  std::string path;
  std::atomic<bool> in_use{true};
  Remembered* next = nullptr;
};
std::atomic<Remembered*> newest{nullptr};
static_assert(std::atomic<Remembered*>::is_always_lock_free);

struct Index {
  std::mutex mutex;
  std::unordered_map<std::string, Remembered*> by_path;
};

/// Lives for ever: other threads may still write when static objects are destroyed.
Index& index() {
  static auto* const only = new Index;
  return *only;
}

/// 128 random bits of the system.
std::string random_hex() {
  std::array<uint8_t, kRandomDigits / 2> random{};
  if (::getentropy(random.data(), random.size()) != 0) {
    throw OutputError(std::string("no random bits for the name of a temporary file: ") +
                      std::strerror(errno));
  }
  return hex(random);
}

/// Tells whether new_temporary_name made the name under the kernel that is running.
bool made_on_this_host(std::string_view name) {
  const std::string start = std::string(kPrefix) + host_digest() + "-";
  if (host_digest().empty() || !name.starts_with(start)) return false;
  const std::string_view digits = name.substr(start.size(), kRandomDigits);
  return digits.size() == kRandomDigits &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_old(const struct stat& status) {
  return std::time(nullptr) - status.st_mtime > kOldSeconds;
}

enum class Fate { kKept, kDoubtful, kRemoved };

/// `path` was made on this host and is old.
Fate remove_if_abandoned(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? Fate::kKept : Fate::kDoubtful;
  Fate fate = Fate::kDoubtful;
  struct stat opened {
  }, named{};
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    // A lock that is held shows a living writer; where locks do not work, nothing is known.
    if (errno == EWOULDBLOCK) fate = Fate::kKept;
  } else if (::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &named) == 0) {
    // Until the lock was taken its writer may have finished, and given the name up.
    const bool is_same = opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
    if (!is_same || !is_old(opened)) {
      fate = Fate::kKept;
    } else if (::unlink(path.c_str()) == 0) {
      fate = Fate::kRemoved;
    }
  } else if (errno == ENOENT) {
    fate = Fate::kKept;
  }
  ::close(file);
  return fate;
}

Fate fate_of(const std::string& path, const std::string& name) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !is_old(status)) return Fate::kKept;
  if (!S_ISREG(status.st_mode) || !made_on_this_host(name)) return Fate::kDoubtful;
  return is_own_temporary(path) ? Fate::kKept : remove_if_abandoned(path);
}

std::string names(const std::vector<std::string>& paths) {
  constexpr size_t kNamed = 5;
  std::string text;
  for (size_t i = 0; i < std::min(paths.size(), kNamed); ++i) {
    text += (i == 0 ? "'" : ", '") + paths[i] + "'";
  }
  if (paths.size() > kNamed) text += " and " + std::to_string(paths.size() - kNamed) + " more";
  return text;
}

}  // namespace

std::string new_temporary_name(std::string_view ending) {
  return std::string(kPrefix) + (host_digest().empty() ? "unknown" : host_digest()) + "-" +
         random_hex() + std::string(ending);
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kPrefix);
}

void remember_temporary(const std::string& path) {
  auto* entry = new Remembered{path};
  const std::lock_guard lock(index().mutex);
  entry->next = newest.load();
  newest.store(entry);
  index().by_path[path] = entry;
}

void forget_temporary(const std::string& path) {
  const std::lock_guard lock(index().mutex);
  const auto found = index().by_path.find(path);
  if (found == index().by_path.end()) return;
  found->second->in_use = false;
  index().by_path.erase(found);
}

bool is_own_temporary(const std::string& path) {
  const std::lock_guard lock(index().mutex);
  return index().by_path.contains(path);
}

void remove_own_temporaries() noexcept {
  for (const Remembered* entry = newest.load(); entry != nullptr; entry = entry->next) {
    if (entry->in_use) ::unlink(entry->path.c_str());
  }
}

Leftovers remove_leftovers(const std::string& folder) noexcept try {
  namespace fs = std::filesystem;
  Leftovers found;
  // Removal while a folder is listed would hide files on some file systems.
  std::vector<std::string> candidates;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_temporary_name(name)) candidates.push_back(name);
  }
  for (const std::string& name : candidates) {
    const std::string path = folder + "/" + name;
    const Fate fate = fate_of(path, name);
    if (fate == Fate::kRemoved) found.removed.push_back(path);
    if (fate == Fate::kDoubtful) found.doubtful.push_back(path);
  }
  return found;
} catch (...) {
  return {};  // not worth a failure
}

void remove_leftovers_once(const std::string& folder, const Context& context) {
  static std::mutex mutex;
  static auto* const done = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!done->insert(folder).second) return;
  }
  const Leftovers found = remove_leftovers(folder);
  if (!found.removed.empty()) {
    context.info("removed what an interrupted run left behind: " + names(found.removed));
  }
  if (!found.doubtful.empty()) {
    context.warn("old temporary files, perhaps of another machine or user, are left alone: " +
                 names(found.doubtful) + "; delete them if no run is writing them");
  }
}

}  // namespace larch
