// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/file_set.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/app/failures.h"
#include "larch/app/signals.h"
#include "larch/core/error.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;

/// The same for all temporaries of the process; random, because a folder may be shared by machines.
const std::string& process_prefix() {
  static const std::string prefix = [] {
    char text[32];
    std::snprintf(text, sizeof text, ".larch-%08x-", std::random_device{}());
    return std::string(text);
  }();
  return prefix;
}

std::string extension_of(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  const std::string last = name.extension().string();
  const bool packed = last == ".gz" || last == ".bz2" || last == ".xz" || last == ".zst";
  return packed ? name.stem().extension().string() + last : last;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string advice(int error) {
  std::string text = std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) text += "; free some space or write to another disk";
  if (error == EFBIG) text += "; raise the limit on file sizes (ulimit -f)";
  if (error == EROFS || error == EACCES || error == EPERM) text += "; write to another folder";
  return text;
}

int write_probe(const std::string& folder) {
  const std::string name = folder + "/" + process_prefix() + "probe";
  const int file = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const std::array<char, 4096> zeros{};
  const ssize_t written = ::write(file, zeros.data(), zeros.size());
  int error = written < 0 ? errno : ENOSPC;
  if (written == static_cast<ssize_t>(zeros.size())) {
    error = fsync(file) != 0 && errno != EINVAL ? errno : 0;
  }
  close(file);
  unlink(name.c_str());
  return error;
}

/// Not every writer notices a short write, so look for the causes of one.
int short_write_cause(const std::string& path, off_t size) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(size) >= limit.rlim_cur) {
    return EFBIG;
  }
  return write_probe(folder_of(path));
}

/// Flushes the temporary to the disk and returns an errno value, or 0.
int flush_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  struct stat status {};
  int error = fstat(file, &status) != 0 ? errno : 0;
  if (error == 0 && fsync(file) != 0 && errno != EINVAL) error = errno;
  close(file);
  return error != 0 ? error : short_write_cause(path, status.st_size);
}

void flush_folder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);  // not all file systems can; the files themselves are safe
  close(file);
}

/// Throws what the writer threw, in terms of the final name. Called in a catch block.
[[noreturn]] void rethrow_for(const std::string& path, const std::string& temporary) {
  const Failure failure = failure_of(std::current_exception());
  if (failure.stopped || failure.code == ExitCode::kMemory) throw;
  std::string cause;
  for (const std::string& message : failure.chain) {
    cause += (cause.empty() ? "" : ": ") + replaced(message, temporary, path);
  }
  std::string outer = "cannot write '" + path + "'";
  struct stat status {};
  const off_t size = stat(temporary.c_str(), &status) == 0 ? status.st_size : 0;
  if (const int error = short_write_cause(path, size)) outer += ": " + advice(error);
  const bool of_output = !failure.expected || failure.code == ExitCode::kOutput;
  try {
    throw std::runtime_error(cause);
  } catch (...) {
    if (of_output) std::throw_with_nested(OutputError(outer));
    std::throw_with_nested(Error(failure.code, outer));
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string temporary_name(const std::string& path) {
  static std::atomic<int> count{0};
  const std::string name = process_prefix() + std::to_string(count++) + extension_of(path);
  return (fs::path(path).parent_path() / name).string();
}

std::string why_not_writable(const std::string& folder) {
  const int error = write_probe(folder);
  return error == 0 ? "" : advice(error);
}

Writer text_writer(const std::string& text) {
  return [text](const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) throw OutputError("cannot write '" + path + "'");
  };
}

FileSet::~FileSet() {
  forget_all();
}

void FileSet::forget_all() {
  for (const Entry& entry : entries_) {
    if (!entry.temporary.empty()) unlink(entry.temporary.c_str());
    forget_temporary(entry.temporary);
  }
  entries_.clear();
}

void FileSet::write(const std::string& path, const Writer& writer) {
  if (stop_ != nullptr && stop_->load() != 0) {
    throw Stopped("stopped before '" + path + "' was written",
                  static_cast<ExitCode>(stop_->load()));
  }
  const std::string temporary = temporary_name(path);
  entries_.push_back({path, temporary});
  remember_temporary(temporary);
  try {
    writer(temporary);
  } catch (...) {
    rethrow_for(path, temporary);
  }
  if (const int error = flush_file(temporary)) {
    throw OutputError("cannot write '" + path + "': " + advice(error));
  }
}

void FileSet::commit() {
  if (stop_ != nullptr && stop_->load() != 0) {
    throw Stopped("stopped before the outputs got their names",
                  static_cast<ExitCode>(stop_->load()));
  }
  std::vector<std::string> fresh;  // renamed to names that were free
  for (Entry& entry : entries_) {
    const bool existed = access(entry.path.c_str(), F_OK) == 0;
    int error = existed && !replace_ ? EEXIST : 0;
    if (error == 0 && std::rename(entry.temporary.c_str(), entry.path.c_str()) != 0) error = errno;
    if (error != 0) {
      for (const std::string& path : fresh) unlink(path.c_str());
      const std::string hint = error == EEXIST ? "; it appeared during the run" : "";
      throw OutputError("cannot write '" + entry.path + "': " + advice(error) + hint);
    }
    forget_temporary(entry.temporary);
    entry.temporary.clear();
    if (!existed) fresh.push_back(entry.path);
  }
  for (const Entry& entry : entries_) flush_folder(folder_of(entry.path));
  entries_.clear();
}

}  // namespace larch::detail

namespace larch {

void write_atomically(const std::string& path, const Writer& writer) {
  detail::FileSet files(/*replace=*/true, nullptr);
  files.write(path, writer);
  files.commit();
}

}  // namespace larch
