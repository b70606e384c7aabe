// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/file_set.h"

#include <cerrno>
#include <fstream>

#include "larch/app/failures.h"
#include "larch/app/signals.h"
#include "larch/core/error.h"
#include "larch/files/temporaries.h"

namespace larch::detail {
namespace {

/// More files than this of one set are not held open; their locks are replaced by fresh times.
constexpr size_t kHeldOpen = 256;
constexpr std::chrono::minutes kRefreshEvery{10};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Throws what the writer threw, in terms of the final name. Called in a catch block.
[[noreturn]] void rethrow_for(const AtomicFile& file) {
  const Failure failure = failure_of(std::current_exception());
  if (failure.stopped || failure.code == ExitCode::kMemory) throw;
  std::string cause;
  for (const std::string& message : failure.chain) {
    cause += (cause.empty() ? "" : ": ") + replaced(message, file.temporary(), file.path());
  }
  std::string outer = "cannot write '" + file.path() + "'";
  if (const int error = file.why_short()) outer += ": " + describe_write_error(error);
  const bool of_output = !failure.expected || failure.code == ExitCode::kOutput;
  try {
    throw std::runtime_error(cause);
  } catch (...) {
    if (of_output) std::throw_with_nested(OutputError(outer));
    std::throw_with_nested(Error(failure.code, outer));
  }
}

}  // namespace

Writer text_writer(const std::string& text) {
  return [text](const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) throw OutputError("cannot write '" + path + "'");
  };
}

void FileSet::write(const std::string& path, const Writer& writer) {
  if (context_.stop_requested()) {
    throw Stopped("stopped before '" + path + "' was written",
                  static_cast<ExitCode>(context_.stop->load()));
  }
  AtomicFile& file = files_.emplace_back(path);
  remove_leftovers_once(folder_of(file.temporary()), context_);
  try {
    writer(file.temporary());
  } catch (...) {
    rethrow_for(file);
  }
  file.flush();
  hold_few_open();
}

void FileSet::hold_few_open() {
  if (files_.size() <= kHeldOpen) return;
  const auto first_held = files_.end() - kHeldOpen;
  (first_held - 1)->release();
  if (std::chrono::steady_clock::now() - refreshed_ < kRefreshEvery) return;
  for (auto file = files_.begin(); file != first_held; ++file) file->refresh();
  refreshed_ = std::chrono::steady_clock::now();
}

std::vector<std::string> FileSet::names() const {
  std::vector<std::string> names;
  for (const AtomicFile& file : files_) names.push_back(file.path());
  return names;
}

std::set<std::string> FileSet::folders() const {
  std::set<std::string> folders;
  for (const AtomicFile& file : files_) {
    if (!file.target().stream) folders.insert(folder_of(file.target().path));
  }
  return folders;
}

void FileSet::commit() {
  std::set<std::string> folders;
  give_names(folders);
  for (const std::string& folder : folders) flush_folder(folder);
}

void FileSet::give_names(std::set<std::string>& folders) {
  if (context_.stop_requested()) {
    throw Stopped("stopped before the outputs got their names",
                  static_cast<ExitCode>(context_.stop->load()));
  }
  const Committing not_torn;
  const auto fail = [&](const AtomicFile& failed, int error) {
    for (const AtomicFile& file : files_) file.take_back();
    const std::string hint = error == EEXIST ? "; it appeared during the run" : "";
    throw OutputError("cannot write '" + failed.path() + "': " + describe_write_error(error) +
                      hint);
  };
  for (const bool streams : {false, true}) {
    for (AtomicFile& file : files_) {
      if (file.target().stream != streams) continue;
      if (const int error = file.commit(replace_)) fail(file, error);
      if (!streams) folders.insert(folder_of(file.target().path));
    }
  }
  files_.clear();
}

}  // namespace larch::detail
