// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include <sys/types.h>

namespace larch {

/// Returns the file that is made or replaced for an output of this name: links are followed, also
/// those that lead nowhere. Throws OutputError for a folder, a pipe, a device, a descriptor of a
/// process
/// (/dev/stdout), a loop of links and names that the file system refuses.
std::string output_target(const std::string& path);

/// Returns the folder of a file name; "." for a bare name.
std::string folder_of(const std::string& path);

/// Returns the name with links, dots and double slashes resolved as far as that goes, by which two
/// names are compared. Never fails.
std::string resolved_name(const std::string& path);

/// An errno value of writing in words, with what to do about it.
std::string describe_write_error(int error);

/// A file that is written under a temporary name in the folder of its target and gets its name once
/// it is whole. The name is made by new_temporary_name, opened with O_EXCL, and keeps the ending of
/// `path`. Until then the file is locked (flock), by which other runs see that its writer lives, so
/// a writer must not replace it by another file of that name.
class AtomicFile {
 public:
  /// Makes the empty temporary. Throws OutputError that names `path`.
  explicit AtomicFile(const std::string& path);
  /// Removes the temporary, unless commit() gave it its name.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }            ///< the name that was asked for
  const std::string& temporary() const { return temporary_; }  ///< where to write
  const std::string& target() const { return target_; }

  /// An errno value if a block could not be added to the file as it is now, else 0. Not every
  /// writer notices that the disk is full.
  int why_short() const;

  /// Throws OutputError if the file is empty and `may_be_empty` is not set, if the disk is full, or
  /// if the temporary was replaced by another file; then flushes it to the disk, once.
  void flush(bool may_be_empty = false);

  /// Gives up the descriptor and with it the lock, of a file that is flushed. For sets of more
  /// files than a process may hold open; refresh() has to be called now and then.
  void release();
  /// Marks a released file as in use, by its time of modification.
  void refresh() const;

  /// Gives the file its name. An errno value, or 0; EEXIST if the name is taken and
  /// `replace` is not set, even if it was taken a moment ago.
  int commit(bool replace);
  /// Removes a file that commit() gave a free name, if it is still the same file.
  void take_back() const;

 private:
  bool has_name(const std::string& name) const;

  std::string path_, target_, temporary_;
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool committed_ = false, was_free_ = false;
};

/// Flushes the entries of a folder to the disk, where the file system can.
void flush_folder(const std::string& folder);

/// Puts what `write` writes under the name `path`, whole or not at all: calls write(temporary) with
/// a temporary name of the same ending, flushes file and folder once each, and renames; a file that
/// is there is replaced. A `path` that is itself such a temporary of this process is written
/// directly: whoever made it flushes and renames. Throws OutputError that names `path`, or what
/// `write` throws.
void write_atomically(const std::string& path,
                      const std::function<void(const std::string& temporary)>& write);

/// Removes a file that write_atomically made, behind a link too. Never fails: what cannot be
/// removed stays.
void remove_output(const std::string& path) noexcept;

/// The right to give names to files in a folder, held until the object ends. It is an flock on the
/// folder itself, in which nothing is made for it; NFS has none on folders. A thread has one at a
/// time, a process too, whatever the folder.
class FolderLock {
 public:
  /// Tries for `seconds`, at least once.
  FolderLock(const std::string& folder, double seconds);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Tells whether another run, which may be stopped, held the lock all the time. Never true where
  /// the file system has no locks.
  bool is_busy() const { return is_busy_; }

 private:
  std::unique_lock<std::timed_mutex> in_process_;
  int file_ = -1;
  bool is_busy_ = false;
};

/// A run waits so long for a lock. Giving names takes milliseconds.
constexpr double kLockSeconds = 10;

}  // namespace larch
