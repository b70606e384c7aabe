// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/core/error.h"

namespace larch {
namespace fs = std::filesystem;
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  std::string advice = ": check the folder's permissions";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) advice = ": free some space";
  if (error == ENOENT || error == ENOTDIR) advice = ": create the folder first";
  throw OutputError("cannot write '" + path + "': " + std::strerror(error) + advice);
}

// The data must be on disk before the rename, or a crash could leave an empty file under the name.
void flush_to_disk(const std::string& temporary, const std::string& path) {
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_to_write(path, errno);
  const int failed = ::fsync(descriptor) != 0 ? errno : 0;
  ::close(descriptor);
  if (failed != 0 && failed != EINVAL && failed != EROFS) fail_to_write(path, failed);
}

}  // namespace

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
  write_through_temporary(path, [&](const std::string& temporary) {
    File file(std::fopen(temporary.c_str(), "wb"));
    if (!file) fail_to_write(path, errno);
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
    const int write_error = errno;
    if (!written) fail_to_write(path, write_error);
    if (std::fclose(file.release()) != 0) fail_to_write(path, errno);
  });
}

void write_through_temporary(const std::string& path,
                             const std::function<void(const std::string& temporary_path)>& write) {
  static std::atomic<unsigned> counter{0};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw OutputError("cannot write '" + path + "': it is a folder; name a file in it");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write(path);  // a device or a pipe: there is nothing to rename
    return;
  }
  // A link keeps pointing where it points: its target is replaced.
  const fs::path target = fs::exists(status) ? fs::canonical(path) : fs::path(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const fs::path temporary = folder / (".larch-" + std::to_string(::getpid()) + "-" +
                                       std::to_string(counter++) + file_extension(path));
  try {
    const int probe = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                             S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    if (probe < 0) fail_to_write(path, errno);
    ::close(probe);
    write(temporary.string());
    flush_to_disk(temporary.string(), path);
    if (::rename(temporary.c_str(), target.c_str()) != 0) fail_to_write(path, errno);
  } catch (const OutputError& failure) {
    fs::remove(temporary, error);
    std::string message = failure.what();  // may name the temporary file, which means nothing
    const size_t at = message.find(temporary.string());
    if (at != std::string::npos) message.replace(at, temporary.string().size(), path);
    throw OutputError(message);
  } catch (...) {
    fs::remove(temporary, error);
    throw;
  }
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
