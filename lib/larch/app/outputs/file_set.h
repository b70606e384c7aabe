// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/files/atomic_file.h"

namespace larch::detail {

/// Files that appear together or not at all: write() makes temporaries, commit() renames them, the
/// destructor removes what was not renamed.
class FileSet {
 public:
  /// The stop flag of `context` is looked at before each file is written; the log is told of
  /// leftovers of interrupted runs that are removed from the folders.
  explicit FileSet(const Context& context) : context_(context) {}
  explicit FileSet(Context&& context) = delete;  // it is kept by reference
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Throws OutputError that names `path`, or what the writer throws, with the name of the
  /// temporary replaced by `path`; Stopped if a stop is requested.
  void write(const std::string& path, const Writer& writer);
  /// A file that is filled already (GrowingOutput). Throws OutputError.
  void take(const std::shared_ptr<AtomicFile>& file);
  /// Gives the files their names. One that is there is replaced if `may_replace` says so. Throws
  /// OutputError; files that got a free name are then gone again.
  void commit(const std::function<bool(const std::string& path)>& may_replace);
  void commit() {
    commit([](const std::string&) { return true; });
  }
  /// Flushes the folders of the files that have their names, and those of `other`.
  void flush_folders(const FileSet* other = nullptr) const;

 private:
  void hold_few_open();

  const Context& context_;
  std::deque<std::shared_ptr<AtomicFile>> files_;
  std::set<std::string> folders_;  // of files that have their names
  std::chrono::steady_clock::time_point refreshed_ = std::chrono::steady_clock::now();
};

/// A writer of plain text.
Writer text_writer(const std::string& text);

}  // namespace larch::detail
