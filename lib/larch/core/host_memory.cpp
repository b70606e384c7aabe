// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/host_memory.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include <unistd.h>

#include "larch/core/text.h"

namespace larch {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
/// Allocations below the first are not looked at; what is taken between two looks is at most the
/// second and at most a quarter of what is left.
constexpr size_t kSmall = size_t{64} << 10, kMaximumUnseen = size_t{256} << 20;
/// Stacks, tables of pages and the message of a failure need some.
constexpr size_t kKept = size_t{2} << 20;

/// Returns the leading number of a text; none for "max", "unlimited" and the like.
std::optional<uint64_t> number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return number(word);
}

/// Returns the number after `key` in a file of lines "key value ...".
std::optional<uint64_t> number_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t at = line.find_first_not_of(" \t:", key.size());
    // What follows the key must not be the rest of a longer key.
    if (at == std::string::npos || at == key.size()) continue;
    return number(line.substr(at));
  }
  return std::nullopt;
}

uint64_t difference(uint64_t limit, uint64_t used) {
  return limit > used ? limit - used : 0;
}

/// Keeps the smallest of what it is told.
class Least {
 public:
  void take(uint64_t bytes, const char* limit) {
    if (bytes < bytes_) {
      bytes_ = bytes;
      limit_ = limit;
    }
  }
  HostMemory result() const { return {static_cast<size_t>(bytes_), limit_}; }

 private:
  uint64_t bytes_ = kUnlimited;
  const char* limit_ = "no limit is known";
};

void take_physical(const std::string& proc, Least& least) {
  const std::string meminfo = proc + "/meminfo";
  if (const auto kilobytes = number_of(meminfo, "MemAvailable")) {
    least.take(*kilobytes * 1024, "physical memory");
  } else {
    least.take(static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) *
                   static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
               "physical memory");
  }
  constexpr uint64_t kNoOvercommit = 2;
  if (number_in(proc + "/sys/vm/overcommit_memory") != kNoOvercommit) return;
  const auto limit = number_of(meminfo, "CommitLimit");
  const auto promised = number_of(meminfo, "Committed_AS");
  if (limit && promised) {
    least.take(difference(*limit, *promised) * 1024, "vm.overcommit_memory=2");
  }
}

void take_process_limits(const std::string& proc, Least& least) {
  const auto take = [&](const char* limit_key, const char* used_key, const char* name) {
    const auto limit = number_of(proc + "/self/limits", limit_key);
    const auto used = number_of(proc + "/self/status", used_key);
    if (limit && used) least.take(difference(*limit, *used * 1024), name);
  };
  take("Max address space", "VmSize", "ulimit -v");
  take("Max data size", "VmData", "ulimit -d");
}

// --- control groups

struct Group {
  std::string folder;  ///< of the process's own group, below the mount point
  std::string mount;   ///< where going up ends
  bool second_version = false;
};

bool has_word(const std::string& list, const std::string& word) {
  std::stringstream words(list);
  for (std::string item; std::getline(words, item, ',');) {
    if (item == word) return true;
  }
  return false;
}

/// Tells whether `path` is the group `above` or one below it.
bool is_below(const std::string& path, const std::string& above) {
  return path.rfind(above, 0) == 0 && (path.size() == above.size() || path[above.size()] == '/');
}

/// Folders of the control groups that limit memory: lines "number:controllers:path" say where in
/// the hierarchies the process is, the mounts where those can be seen.
std::vector<Group> groups(const std::string& root) {
  std::string first_path, second_path;
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    const size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1);
    if (has_word(controllers, "memory")) first_path = line.substr(two + 1);
    if (controllers.empty()) second_path = line.substr(two + 1);
  }
  std::vector<Group> found;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line.substr(0, separator)), after(line.substr(separator + 3));
    std::string skipped, visible, mount, type, source, options;
    before >> skipped >> skipped >> skipped >> visible >> mount;
    after >> type >> source >> options;
    const bool second = type == "cgroup2";
    if (!second && !(type == "cgroup" && has_word(options, "memory"))) continue;
    std::string path = second ? second_path : first_path;
    if (path.empty()) continue;
    // A mount may show a part of the hierarchy only: the part below `visible`.
    if (visible != "/" && is_below(path, visible)) path.erase(0, visible.size());
    if (path.find("/..") != std::string::npos || path == "/") path.clear();
    found.push_back({root + mount + path, root + mount, second});
  }
  return found;
}

/// Memory that the group uses and that would not be given back when it is needed: all but the
/// pages of files. Those that were read twice are "active", and are given back as well.
std::optional<uint64_t> in_use(const std::string& folder, bool second_version) {
  const auto used =
      number_in(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!used) return std::nullopt;
  const std::string prefix = second_version ? "" : "total_";
  uint64_t kept = *used;
  for (const char* list : {"inactive_file", "active_file"}) {
    kept = difference(kept, number_of(folder + "/memory.stat", prefix + list).value_or(0));
  }
  return kept;
}

void take_group(const std::string& folder, bool second_version, Least& least) {
  const std::optional<uint64_t> used = in_use(folder, second_version);
  if (!used) return;
  const auto take = [&](std::optional<uint64_t> limit) {
    if (limit) least.take(difference(*limit, *used), "memory limit of the control group");
  };
  if (second_version) {
    take(number_in(folder + "/memory.max"));
    take(number_in(folder + "/memory.high"));
  } else {
    take(number_in(folder + "/memory.limit_in_bytes"));
    // The limits of groups above, also of those that cannot be seen from here.
    take(number_of(folder + "/memory.stat", "hierarchical_memory_limit"));
  }
}

void take_groups(const std::string& root, Least& least) {
  for (const Group& group : groups(root)) {
    std::string folder = group.folder;
    while (true) {
      take_group(folder, group.second_version, least);
      if (folder.size() <= group.mount.size()) break;
      folder.erase(folder.rfind('/'));
    }
  }
}

std::string readable(size_t bytes) {
  return formatted("%.2f GiB (%zu bytes)", static_cast<double>(bytes) / (1024.0 * 1024 * 1024),
                   bytes);
}

}  // namespace

HostMemory free_host_memory(const std::string& root) {
  Least least;
  take_physical(root + "/proc", least);
  take_process_limits(root + "/proc", least);
  take_groups(root, least);
  return least.result();
}

bool host_memory_allows(size_t bytes) {
  static std::atomic<size_t> unseen = 0;
  if (bytes <= kSmall) return true;
  size_t left = unseen;
  while (bytes <= left) {
    if (unseen.compare_exchange_weak(left, left - bytes)) return true;
  }
  const uint64_t free = difference(free_host_memory().bytes, kKept);
  unseen = std::min<size_t>(difference(free, bytes) / 4, kMaximumUnseen);
  return bytes <= free;
}

std::string out_of_memory_text(size_t needed_bytes) {
  const HostMemory free = free_host_memory();
  return "out of memory: " + (needed_bytes > 0 ? readable(needed_bytes) + " needed, " : "") +
         readable(free.bytes) + " free (" + free.limit +
         "): run where more is free or allowed, or on a smaller or coarser image";
}

}  // namespace larch
