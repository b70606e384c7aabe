// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
  return errno == ENOENT ? "does not exist"
                         : std::string("cannot be read: ") + std::strerror(errno);
}

int64_t file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return status.st_size;
  const std::string why = why_missing(path);
  throw InputError("'" + path + "' " + (why.empty() ? "is not a regular file" : why));
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_file(at->path().string())) files.push_back(at->path().string());
  }
  if (error) {
    throw InputError("cannot read the folder '" + folder + "': " + error.message() +
                     ": check the path and its permissions");
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_file(const std::string& path) {
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
  if (S_ISREG(status.st_mode)) bytes.reserve(static_cast<size_t>(status.st_size));
  char block[1 << 16];
  size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file.get())) > 0) bytes.append(block, got);
  if (std::ferror(file.get()) != 0) {
    throw InputError("cannot read '" + path + "': the storage reported an error");
  }
  return bytes;
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
  if (last != ".gz") return last;
  const size_t before = name.rfind('.', dot - 1);
  return before == std::string::npos || before == 0 ? last : name.substr(before);
}

}  // namespace larch
