// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch {
namespace fs = std::filesystem;
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

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

bool is_folder(const std::string& path) noexcept {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string& path) noexcept {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string why_missing(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return "";
  if (errno != ENOENT) return std::string("cannot be read: ") + std::strerror(errno);
  std::error_code error;
  if (!fs::is_symlink(path, error)) return "does not exist";
  return "is a link to a file that is not there (one of git-annex comes with 'git annex get')";
}

int64_t file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return status.st_size;
  const std::string why = why_missing(path);
  throw InputError("'" + path + "' " + (why.empty() ? "is not a regular file" : why));
}

std::optional<FileStamp> settled_stamp(const std::string& path) {
  constexpr int64_t kSecond = 1'000'000'000;
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
  };
  struct stat status {};
  timespec now{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const FileStamp stamp{status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim),
                        status.st_ino, status.st_dev};
  if (std::max(stamp.modified_ns, stamp.changed_ns) > nanoseconds(now) - 2 * kSecond) {
    return std::nullopt;
  }
  return stamp;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_folder(at->path().string())) files.push_back(at->path().string());
  }
  if (error) {
    throw InputError("cannot read the folder '" + folder + "': " + error.message() +
                     ": check the path and its permissions");
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(const std::string& path, size_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw InputError("cannot read '" + path + "': " + std::strerror(errno) + ": check the path");
  }
  if (S_ISDIR(status.st_mode)) {
    throw InputError("cannot read '" + path + "': it is a folder; name a file in it");
  }
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    throw InputError("cannot read '" + path + "': " + std::strerror(errno) +
                     ": check its permissions");
  }
  std::string bytes;
  if (S_ISREG(status.st_mode)) bytes.reserve(std::min(static_cast<size_t>(status.st_size), most));
  char block[1 << 16];
  const auto wanted = [&] { return std::min(sizeof block, most - bytes.size()); };
  size_t got = 0;
  while ((got = std::fread(block, 1, wanted(), file.get())) > 0) bytes.append(block, got);
  if (std::ferror(file.get()) != 0) {
    throw InputError("cannot read '" + path + "': the storage reported an error");
  }
  return bytes;
}

void refuse_placeholder(const std::string& path, std::string_view first_bytes) {
  const std::string_view start = first_bytes.substr(0, kBeginning);
  const auto begins = [&](std::string_view text) { return start.starts_with(text); };
  const auto says = [&](std::string_view text) { return start.find(text) != start.npos; };
  const auto refuse = [&](const char* what) { throw InputError("'" + path + "' is " + what); };
  if (start.empty()) refuse("empty (0 bytes): copy or download it again");
  if (begins("version https://git-lfs.") || begins("version https://hawser.")) {
    refuse("a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'");
  }
  // Where there are no links, the text of one stands in a file.
  if (begins("/annex/objects/") || (begins(".") && says(".git/annex/objects/"))) {
    refuse("a git-annex pointer, not the file itself: fetch it with 'git annex get'");
  }
  const size_t first = start.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (first == start.npos || start[first] != '<') return;
  for (const char* tag : {"<html", "<HTML", "<!doctype html", "<!DOCTYPE html", "<!DOCTYPE HTML"}) {
    if (says(tag))
      refuse("an HTML page (an error, a login), not the file itself: download it again");
  }
}

void write_file(const std::string& path, std::string_view bytes) {
  write_atomically(path, [&](const std::string& temporary) {
    File file(std::fopen(temporary.c_str(), "wb"));
    const bool written = file &&
                         std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size() &&
                         std::fclose(file.release()) == 0;
    if (!written) {
      throw OutputError("cannot write '" + temporary + "': " + describe_write_error(errno));
    }
  });
}

std::string file_extension(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return "";
  std::string last = name.substr(dot);
  if (name.ends_with(".seg.nrrd") && dot > 4) return ".seg.nrrd";
  if (last != ".gz") return last;
  const size_t before = name.rfind('.', dot - 1);
  return before == std::string::npos || before == 0 ? last : name.substr(before);
}

}  // namespace larch
