// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "larch/files/file.h"

namespace larch::io {

/// Headers of files that were looked at, so that a program that asks for an image several times
/// opens it once. A file that was changed is looked at again. Several threads may ask.
template <class Header>
class KeptHeaders {
 public:
  std::optional<Header> find(const std::string& path, const std::optional<FileStamp>& stamp) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(path);
    if (!stamp || found == kept_.end() || found->second.first != *stamp) return std::nullopt;
    return found->second.second;
  }
  /// `stamp`: that the file had before it was read.
  void keep(const std::string& path, const std::optional<FileStamp>& stamp, const Header& header) {
    if (!stamp) return;
    const std::lock_guard lock(mutex_);
    if (kept_.size() >= kMaximumHeaders) kept_.clear();
    kept_.insert_or_assign(path, std::pair(*stamp, header));
  }

 private:
  static constexpr size_t kMaximumHeaders = 2048;  // a few MB

  std::mutex mutex_;
  std::map<std::string, std::pair<FileStamp, Header>> kept_;
};

}  // namespace larch::io
