// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/records/input_digests.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "larch/config/suggest.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using config::Json;

int64_t nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::string digest_of(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return sha256_of(config::join(lines, ""));
}

Json folder_stamp(const std::string& path) {
  std::vector<std::string> lines, changes;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (stat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    bytes += static_cast<uint64_t>(status.st_size);
    const std::string name = entry->path().lexically_relative(path).string();
    lines.push_back(name + "\t" + std::to_string(status.st_size) + "\t" +
                    std::to_string(nanoseconds(status.st_mtim)) + "\t" +
                    std::to_string(status.st_ino) + "\n");
    changes.push_back(name + "\t" + std::to_string(nanoseconds(status.st_ctim)) + "\n");
  }
  return {{"Files", lines.size()},
          {"Bytes", bytes},
          {"Listing", digest_of(std::move(lines))},
          {"Changed", digest_of(std::move(changes))}};
}

/// SHA-256 of a file; of a folder, that of the lines "<sha256>  <name>" of its files (and those of
/// the folders below) in the order of their names. Empty for what is neither. `known`: digests of
/// files of the folder, by path. Throws InputError.
std::string input_digest(const std::string& path, const std::map<std::string, std::string>& known) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return sha256_of_file(path);
  if (!fs::is_directory(path, error)) return "";  // a pipe cannot be read again
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(path, error);
  for (std::error_code ignored; !error && at != fs::end(at); at.increment(error)) {
    if (at->is_regular_file(ignored)) files.push_back(at->path().lexically_relative(path).string());
  }
  if (error) {
    throw InputError("cannot read the folder '" + path + "': " + error.message() +
                     ": check the permissions of the folders below");
  }
  std::sort(files.begin(), files.end());
  std::string rows;
  for (const std::string& file : files) {
    const std::string whole = (fs::path(path) / file).string();
    const auto found = known.find(whole);
    rows += (found != known.end() ? found->second : sha256_of_file(whole)) + "  " + file + "\n";
  }
  return sha256_of(rows);
}

}  // namespace

Json input_stamp(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return nullptr;
  if (S_ISDIR(status.st_mode)) return folder_stamp(path);
  if (!S_ISREG(status.st_mode)) return nullptr;
  return {{"Bytes", static_cast<uint64_t>(status.st_size)},
          {"Modified", nanoseconds(status.st_mtim)},
          {"Changed", nanoseconds(status.st_ctim)},
          {"Inode", static_cast<uint64_t>(status.st_ino)}};
}

void InputDigests::note(const std::string& path) {
  const Json stamp = input_stamp(path);
  const std::lock_guard lock(mutex_);
  noted_.emplace(path, stamp);
}

void InputDigests::know(const std::string& path, const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto noted = noted_.find(path);
  if (noted != noted_.end()) digests_.emplace(path + "\n" + noted->second.dump(), digest);
  const std::string folder = fs::path(path).parent_path().string();
  if (noted_.contains(folder)) files_[folder].emplace(path, digest);
}

DigestSink InputDigests::sink() {
  return [this](const std::string& path, const std::string& digest) { know(path, digest); };
}

Json InputDigests::record(const std::string& path) {
  Json stamp = input_stamp(path);
  if (stamp.is_null()) return Json::object();
  const std::string key = path + "\n" + stamp.dump();
  std::map<std::string, std::string> files;
  {
    const std::lock_guard lock(mutex_);
    const auto noted = noted_.find(path);
    if (noted != noted_.end() && noted->second != stamp) {
      stamp["ChangedDuringRun"] = true;
      return stamp;
    }
    if (noted != noted_.end()) files = files_[path];
    const auto known = digests_.find(key);
    if (known != digests_.end()) {
      stamp["SHA256"] = known->second;
      return stamp;
    }
  }
  const std::string digest = input_digest(path, files);
  if (digest.empty() || input_stamp(path) != stamp) {
    stamp["ChangedDuringRun"] = true;
    return stamp;
  }
  stamp["SHA256"] = digest;
  const std::lock_guard lock(mutex_);
  digests_.emplace(key, digest);
  return stamp;
}

}  // namespace larch::detail
