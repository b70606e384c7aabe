// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

namespace larch {

/// Where the bytes for an output's name go.
struct OutputTarget {
  std::string path;  ///< the file that is made or replaced: links are followed, also dangling ones
  bool stream =
      false;  ///< a device, a pipe or a descriptor of the process: written to, never replaced
};

/// Follows links. A name below /proc, such as where /dev/stdout leads, is a descriptor of a process
/// and so a stream, even if there is a regular file behind it. Throws OutputError for a folder, a
/// loop of links and names that the file system refuses.
OutputTarget output_target(const std::string& path);

/// Whether something that is there would be lost if `path` were written: a regular file or a block
/// device, but not a terminal, /dev/null or a pipe. Throws as output_target does.
bool would_replace(const std::string& path);

/// The folder of a file name; "." for a bare name.
std::string folder_of(const std::string& path);

/// The name with links, dots and double slashes resolved as far as that goes, by which two names
/// are compared. Never fails.
std::string resolved_name(const std::string& path);

/// An errno value of writing in words, with what to do about it.
std::string describe_write_error(int error);

/// A file that is written under a temporary name in the folder of its target and gets its name once
/// it is whole. The name is made by new_temporary_name, opened with O_EXCL, and keeps the ending of
/// `path`. Until then the file is locked (flock), by which other runs see that its writer lives, so
/// a writer must not replace it by another file of that name. What goes to a stream is written in
/// the folder for temporary files ($TMPDIR or /tmp) first.
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
  const OutputTarget& target() const { return target_; }

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

  /// Gives the file its name; a stream receives the bytes. An errno value, or 0; EEXIST if the name
  /// is taken and `replace` is not set, which holds also if it was taken a moment ago.
  int commit(bool replace);
  /// Removes a file that commit() gave a free name, if it is still the same file.
  void take_back() const;

 private:
  bool is_still_there() const;

  std::string path_, temporary_;
  OutputTarget target_;
  int file_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  bool committed_ = false, was_free_ = false;
};

/// Flushes the entries of a folder to the disk, where the file system can.
void flush_folder(const std::string& folder);

/// Puts what `write` writes under the name `path`, whole or not at all: calls write(temporary) with
/// a temporary name of the same ending, flushes file and folder once each, and renames; a file that
/// is there is replaced, a device or a pipe written to. If `path` is itself such a temporary of
/// this process, it is written directly: whoever made it flushes and renames. Throws OutputError
/// that names `path`, or what `write` throws.
void write_atomically(const std::string& path,
                      const std::function<void(const std::string& temporary)>& write);

/// Removes a file that write_atomically made, behind a link too; a device or a pipe stays. Never
/// fails: what cannot be removed stays.
void remove_output(const std::string& path) noexcept;

/// Why no file can be written in `folder`, in words; empty if one can. Tries it.
std::string why_not_writable(const std::string& folder);

}  // namespace larch
