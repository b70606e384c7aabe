// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/files/atomic_file.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

namespace larch {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

[[noreturn]] void fail(const std::string& path, int error) {
  if (error == EISDIR) {
    throw OutputError("output '" + path + "' is a folder; a file name is needed");
  }
  throw OutputError("cannot write '" + path + "': " + describe_write_error(error));
}

/// Links below /proc name descriptors of processes, whatever they seem to point to.
bool leads_to_descriptor(const std::string& link) {
  struct statfs status {};
  return ::statfs(folder_of(link).c_str(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

constexpr int kMaximumLinks = 40;  ///< as many as the kernel follows

/// ".nii.gz": what writers go by. A very long one is no ending, and would make the name too long.
std::string ending_of(const std::string& path) {
  const fs::path name = fs::path(path).filename();
  const std::string last = name.extension().string();
  const bool packed = last == ".gz" || last == ".bz2" || last == ".xz" || last == ".zst";
  if (file_extension(path) == ".seg.nrrd") return ".seg.nrrd";
  const std::string ending = packed ? name.stem().extension().string() + last : last;
  return ending.size() <= 32 ? ending : "";
}

/// A lock is a courtesy to other runs: without one the file is only not recognised as abandoned.
void lock(int file) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EINTR) {
  }
}

/// More files may be open than the usual limit of 1024; the hard limit is the administrator's.
bool raise_limit_of_open_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int open_new(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int file = ::open(path.c_str(), kFlags, kMode);
  if (file >= 0 || errno != EMFILE || !raise_limit_of_open_files()) return file;
  return ::open(path.c_str(), kFlags, kMode);
}

int rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system cannot do both at once.
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string resolved_name(const std::string& path) {
  std::error_code error;
  fs::path all = fs::absolute(path, error);  // what is not there would stay relative
  if (error) all = path;
  fs::path resolved = fs::weakly_canonical(all, error);
  for (int links = 0; !error && links <= kMaximumLinks;
       ++links) {  // one to nothing is left as it is
    std::error_code is_none;
    const fs::path next = fs::read_symlink(resolved, is_none);
    if (is_none) break;
    resolved = fs::weakly_canonical(resolved.parent_path() / next, error);
  }
  return (error ? all.lexically_normal() : resolved).string();
}

std::string describe_write_error(int error) {
  std::string text = std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) text += "; free some space or write to another disk";
  if (error == EFBIG) text += "; raise the limit on file sizes (ulimit -f)";
  if (error == EROFS || error == EACCES || error == EPERM) text += "; write to another folder";
  if (error == ENOENT) text += "; make the folder first, or correct the name";
  if (error == ENAMETOOLONG || error == ENOTDIR || error == ELOOP) text += "; correct the name";
  if (error == EMFILE || error == ENFILE) text += "; raise the limit on open files (ulimit -n)";
  if (error == EPIPE) text += "; nobody reads it any more";
  return text;
}

std::string output_target(const std::string& path) {
  fs::path at = path;
  for (int links = 0; links <= kMaximumLinks; ++links) {
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0) {
      if (errno != ENOENT) fail(path, errno);
      return at.string();
    }
    if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
    if (S_ISREG(status.st_mode)) return at.string();
    if (!S_ISLNK(status.st_mode) || leads_to_descriptor(at.string())) {
      throw OutputError("output '" + path +
                        "' is a pipe, a device or a descriptor; give the name of a file");
    }
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error) fail(path, error.value());
    at = at.parent_path() / next;
  }
  fail(path, ELOOP);
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(output_target(path)) {
  const fs::path folder = fs::path(target_).parent_path();
  const std::string name = (folder / new_temporary_name(ending_of(path))).string();
  file_ = open_new(name);
  if (file_ < 0) fail(path, errno);  // a file of that name would be another process's
  temporary_ = name;
  lock(file_);
  struct stat status {};
  if (::fstat(file_, &status) == 0) device_ = status.st_dev, inode_ = status.st_ino;
  try {
    remember_temporary(temporary_);
  } catch (...) {
    ::unlink(temporary_.c_str());
    ::close(file_);
    throw;
  }
}

AtomicFile::~AtomicFile() {
  if (!committed_) ::unlink(temporary_.c_str());
  forget_temporary(temporary_);
  if (file_ >= 0) ::close(file_);
}

/// Tells whether the name leads to this file.
bool AtomicFile::has_name(const std::string& name) const {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

int AtomicFile::why_short() const {
  struct stat status {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) return 0;
  constexpr std::array<char, 4096> kBlock{};
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const auto size = static_cast<rlim_t>(status.st_size);
    if (size >= limit.rlim_cur) return EFBIG;
    if (size + kBlock.size() > limit.rlim_cur) return 0;  // the block would pass it, the file not
  }
  const ssize_t added = ::pwrite(file_, kBlock.data(), kBlock.size(), status.st_size);
  int error = added < 0 ? errno : ENOSPC;
  if (added == static_cast<ssize_t>(kBlock.size())) error = 0;
  if (::ftruncate(file_, status.st_size) != 0 && error == 0) error = errno;
  return error;
}

void AtomicFile::flush(bool may_be_empty) {
  if (!has_name(temporary_)) {
    throw OutputError("cannot write '" + path_ + "': its temporary file '" + temporary_ +
                      "' was removed or replaced while it was written; look for a program that "
                      "cleans the folder");
  }
  if (const int error = why_short()) fail(path_, error);
  struct stat status {};
  if (!may_be_empty && ::fstat(file_, &status) == 0 && status.st_size == 0) {
    throw OutputError("cannot write '" + path_ + "': nothing was written");
  }
  if (::fsync(file_) != 0 && errno != EINVAL && errno != EROFS) fail(path_, errno);
}

void AtomicFile::release() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void AtomicFile::refresh() const {
  ::utimensat(AT_FDCWD, temporary_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

int AtomicFile::commit(bool replace) {
  struct stat status {};
  was_free_ = ::lstat(target_.c_str(), &status) != 0;
  int error = 0;
  if (!replace) {
    error = rename_to_free_name(temporary_, target_);
  } else if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    error = errno;
  }
  committed_ = error == 0;
  return error;
}

void AtomicFile::take_back() const {
  if (committed_ && was_free_ && has_name(target_)) ::unlink(target_.c_str());
}

void flush_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);  // not all file systems can; the files themselves are safe
  ::close(file);
}

void write_atomically(const std::string& path,
                      const std::function<void(const std::string& temporary)>& write) {
  if (is_own_temporary(path)) {
    write(path);
    return;
  }
  AtomicFile file(path);
  try {
    write(file.temporary());
  } catch (const OutputError& failure) {
    std::string message = failure.what();  // may name the temporary file, which means nothing
    const size_t at = message.find(file.temporary());
    if (at != std::string::npos) message.replace(at, file.temporary().size(), path);
    throw OutputError(message);
  }
  file.flush(/*may_be_empty=*/true);
  if (const int error = file.commit(/*replace=*/true)) fail(path, error);
  flush_folder(folder_of(file.target()));
}

void remove_output(const std::string& path) noexcept try {
  ::unlink(output_target(path).c_str());
} catch (...) {
}

FolderLock::FolderLock(const std::string& folder, double seconds) {
  using Clock = std::chrono::steady_clock;
  static std::timed_mutex one_at_a_time;
  const auto start = Clock::now();
  // Threads of one process wait here, and go on at once when it is their turn.
  in_process_ = std::unique_lock(one_at_a_time, std::chrono::duration<double>(seconds));
  is_busy_ = !in_process_.owns_lock();
  if (is_busy_) return;
  file_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // It is tried again and again, since a waiting flock could not be given up.
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    is_busy_ = errno == EWOULDBLOCK;
    const bool is_over = std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
    if (!is_busy_ || is_over) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  is_busy_ = false;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace larch
