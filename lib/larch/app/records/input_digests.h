// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "larch/config/config.h"
#include "larch/core/digest.h"

namespace larch::detail {

/// The stamp by which an input is known again without reading it: {"Bytes", "Modified", "Changed",
/// "Inode"}, times in nanoseconds since 1970; of a folder {"Files", "Bytes", "Listing", "Changed"},
/// the SHA-256 of the names, sizes, times of modification and inodes of its files, and that of
/// their names and times of change: a copy that keeps the time of modification has those of its
/// own. null for what is neither.
config::Json input_stamp(const std::string& path);

/// Stamps and digests of the inputs of a process; each content is read once. Several threads may
/// ask.
class InputDigests {
 public:
  /// Remembers the stamp of an input that is going to be read.
  void note(const std::string& path);
  /// The digest of what was read of an input, or of a file of a folder that is one, since it was
  /// noted, so that `record` does not read it.
  void know(const std::string& path, const std::string& digest);
  /// Calls know().
  DigestSink sink();
  /// The stamp, and "SHA256" unless the input cannot be read twice (a pipe). If the stamp is not
  /// what it was when it was noted, there is "ChangedDuringRun" instead: also after a change of
  /// rights or names alone, since a content that is written over keeps its size and can be given
  /// its old time of modification. Throws InputError.
  config::Json record(const std::string& path);

 private:
  std::mutex mutex_;
  std::map<std::string, config::Json> noted_;
  std::map<std::string, std::string> digests_;                       // by path and stamp
  std::map<std::string, std::map<std::string, std::string>> files_;  // of noted folders, by path
};

}  // namespace larch::detail
