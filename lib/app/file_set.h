// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "larch/app/outputs.h"

namespace larch::detail {

/// Files that appear together or not at all: write() makes temporaries, commit() renames them, the
/// destructor removes what was not renamed.
class FileSet {
 public:
  /// `replace`: files that exist may be replaced. `stop` may be null.
  FileSet(bool replace, const std::atomic<int>* stop) : replace_(replace), stop_(stop) {}
  ~FileSet();
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  /// Throws OutputError that names `path`, or what the writer throws, with the name of the
  /// temporary replaced by `path`; Stopped if `stop` is set.
  void write(const std::string& path, const Writer& writer);
  void commit();

 private:
  struct Entry {
    std::string path, temporary;
  };
  void forget_all();

  bool replace_;
  const std::atomic<int>* stop_;
  std::vector<Entry> entries_;
};

/// A name in the folder of `path`, with its extension: ".larch-1a2b3c4d-0.nii.gz".
std::string temporary_name(const std::string& path);

/// The folder of a file name; "." for a bare name.
std::string folder_of(const std::string& path);

/// Writes a small file in `folder` and removes it. Empty if that worked, else why it did not, such
/// as "Read-only file system".
std::string why_not_writable(const std::string& folder);

/// A writer of plain text.
Writer text_writer(const std::string& text);

}  // namespace larch::detail
