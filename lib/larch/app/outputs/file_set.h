// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/files/atomic_file.h"

namespace larch::detail {

/// Files that appear together or not at all: write() makes temporaries, commit() renames them, the
/// destructor removes what was not renamed. What goes to a device or a pipe is sent by commit()
/// after the files have their names.
class FileSet {
 public:
  /// `replace`: files that exist may be replaced. The stop flag of `context` is looked at before
  /// each file and before the names are given; the log is told of leftovers of interrupted runs
  /// that are removed from the folders.
  FileSet(bool replace, const Context& context) : replace_(replace), context_(context) {}
  FileSet(bool replace, Context&& context) = delete;  // it is kept by reference
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Throws OutputError that names `path`, or what the writer throws, with the name of the
  /// temporary replaced by `path`; Stopped if a stop is requested.
  void write(const std::string& path, const Writer& writer);
  /// A file that is filled already (growing_output.h). Throws OutputError.
  void take(const std::shared_ptr<AtomicFile>& file);
  /// Those that were written and have not got their names.
  std::vector<std::string> names() const;
  /// The folders that commit() gives names in; not those of devices and pipes.
  std::set<std::string> folders() const;
  /// Gives the files their names and flushes their folders. Throws OutputError or Stopped.
  void commit();
  /// The same, but leaves the flushing to the caller: adds the folders to `folders`.
  void give_names(std::set<std::string>& folders);

 private:
  void hold_few_open();

  bool replace_;
  const Context& context_;
  std::deque<std::shared_ptr<AtomicFile>> files_;
  std::chrono::steady_clock::time_point refreshed_ = std::chrono::steady_clock::now();
};

/// A writer of plain text.
Writer text_writer(const std::string& text);

}  // namespace larch::detail
