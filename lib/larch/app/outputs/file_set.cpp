// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/file_set.h"

#include <cerrno>

#include "larch/app/signals.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::detail {
namespace {

/// More files than this of one set are not held open; their locks are replaced by fresh times.
constexpr size_t kHeldOpen = 256;
constexpr std::chrono::minutes kRefreshEvery{10};

}  // namespace

Writer text_writer(const std::string& text) {
  return [text](const std::string& path) { write_file(path, text); };
}

void FileSet::write(const std::string& path, const Writer& writer) {
  context_.throw_if_stopped("stopped before '" + path + "' was written");
  const GrowingOutput output(path, context_);
  output.fill([&] { writer(output.temporary()); });
  take(output.file());
}

void FileSet::take(const std::shared_ptr<AtomicFile>& file) {
  files_.push_back(file);
  file->flush();
  hold_few_open();
}

void FileSet::hold_few_open() {
  if (files_.size() <= kHeldOpen) return;
  const auto first_held = files_.end() - kHeldOpen;
  (*(first_held - 1))->release();
  if (std::chrono::steady_clock::now() - refreshed_ < kRefreshEvery) return;
  for (auto file = files_.begin(); file != first_held; ++file) (*file)->refresh();
  refreshed_ = std::chrono::steady_clock::now();
}

void FileSet::commit(const std::function<bool(const std::string& path)>& may_replace) {
  const Committing not_torn;
  for (const auto& file : files_) {
    const int error = file->commit(may_replace(file->path()));
    if (error == 0) {
      folders_.insert(folder_of(file->target()));
      continue;
    }
    for (const auto& earlier : files_) earlier->take_back();
    const std::string hint = error == EEXIST ? "; --force replaces it" : "";
    throw OutputError("cannot write '" + file->path() + "': " + describe_write_error(error) + hint);
  }
  files_.clear();
}

void FileSet::flush_folders(const FileSet* other) const {
  std::set<std::string> folders = folders_;
  if (other != nullptr) folders.insert(other->folders_.begin(), other->folders_.end());
  for (const std::string& folder : folders) flush_folder(folder);
}

}  // namespace larch::detail
